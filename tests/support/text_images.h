// Images of text that need no download: lines, pages and digits, drawn with a font of 5 x 9 points, with other sizes, greys and
// noise from image to image. For tests, and for scripts/demo_images.sh, which compiles it alone: it uses the standard library only.
//
//   std::mt19937_64 random(1);
//   const GreyImage image = draw_text({"three red cars"}, random_style(random), random);
//   write_pgm("line.pgm", image);
//
//   make_line_folder("lines", 2000, /*seed=*/1);     // lines/lines.tsv (image, text) and lines/images/*.pgm
//   make_page_folder("pages", 200, 1);               // pages/imgs/*.pgm, pages/texts/*.mmd, pages/split.json: German to English;
//                                                    // and the texts of those to train on as pairs, pages/texts.jsonl
//   make_digit_folder("digits", 300, 1);             // digits/train/7/*.pgm, digits/test/7/*.pgm
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace brisk::test {

struct GreyImage {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width]
};

struct TextStyle {
  double scale = 2;  // pixels a point
  double slant = 0;  // columns to the right for each row up
  int margin = 3;    // pixels around
  double paper = 235, ink = 25;
  double noise = 0;  // standard deviation, in grey levels
};
TextStyle random_style(std::mt19937_64& random);

// Characters that the font does not have are drawn as a box.
GreyImage draw_text(const std::vector<std::string>& lines, const TextStyle& style, std::mt19937_64& random);
void write_pgm(const std::string& path, const GreyImage& image);

// "12 coffees 4.50", "the green house", "No. 7431": words, numbers and prices.
std::string random_line(std::mt19937_64& random);

// Each makes its folder, with so many images; of digits so many for training and a fifth as many to test. The same seed makes the
// same files.
void make_line_folder(const std::string& folder, int64_t images, uint64_t seed);
void make_page_folder(const std::string& folder, int64_t images, uint64_t seed);
void make_digit_folder(const std::string& folder, int64_t images, uint64_t seed);

}  // namespace brisk::test
