#include "support/text_images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace brisk::test {

namespace {

constexpr int kGlyphWidth = 5, kGlyphRows = 9, kLineRows = 11, kAdvance = 6;

struct Glyph {
  char character;
  const char* rows;  // from the top, 5 points each; those that are missing at the end are empty
};
constexpr Glyph kFont[] = {
    {' ', ""},
    {'0', ".###. #...# #..## #.#.# ##..# #...# .###."},
    {'1', "..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###."},
    {'2', ".###. #...# ....# ...#. ..#.. .#... #####"},
    {'3', ".###. #...# ....# ..##. ....# #...# .###."},
    {'4', "...#. ..##. .#.#. #..#. ##### ...#. ...#."},
    {'5', "##### #.... ####. ....# ....# #...# .###."},
    {'6', "..##. .#... #.... ####. #...# #...# .###."},
    {'7', "##### ....# ...#. ...#. ..#.. ..#.. ..#.."},
    {'8', ".###. #...# #...# .###. #...# #...# .###."},
    {'9', ".###. #...# #...# .#### ....# ...#. .##.."},
    {'A', ".###. #...# #...# ##### #...# #...# #...#"},
    {'B', "####. #...# #...# ####. #...# #...# ####."},
    {'C', ".###. #...# #.... #.... #.... #...# .###."},
    {'D', "####. #...# #...# #...# #...# #...# ####."},
    {'E', "##### #.... #.... ####. #.... #.... #####"},
    {'F', "##### #.... #.... ####. #.... #.... #...."},
    {'G', ".###. #...# #.... #.### #...# #...# .###."},
    {'H', "#...# #...# #...# ##### #...# #...# #...#"},
    {'I', ".###. ..#.. ..#.. ..#.. ..#.. ..#.. .###."},
    {'J', "..### ...#. ...#. ...#. ...#. #..#. .##.."},
    {'K', "#...# #..#. #.#.. ##... #.#.. #..#. #...#"},
    {'L', "#.... #.... #.... #.... #.... #.... #####"},
    {'M', "#...# ##.## #.#.# #.#.# #...# #...# #...#"},
    {'N', "#...# ##..# ##..# #.#.# #..## #..## #...#"},
    {'O', ".###. #...# #...# #...# #...# #...# .###."},
    {'P', "####. #...# #...# ####. #.... #.... #...."},
    {'Q', ".###. #...# #...# #...# #.#.# #..#. .##.#"},
    {'R', "####. #...# #...# ####. #.#.. #..#. #...#"},
    {'S', ".#### #.... #.... .###. ....# ....# ####."},
    {'T', "##### ..#.. ..#.. ..#.. ..#.. ..#.. ..#.."},
    {'U', "#...# #...# #...# #...# #...# #...# .###."},
    {'V', "#...# #...# #...# #...# .#.#. .#.#. ..#.."},
    {'W', "#...# #...# #...# #.#.# #.#.# ##.## #...#"},
    {'X', "#...# #...# .#.#. ..#.. .#.#. #...# #...#"},
    {'Y', "#...# #...# .#.#. ..#.. ..#.. ..#.. ..#.."},
    {'Z', "##### ....# ...#. ..#.. .#... #.... #####"},
    {'a', "..... ..... .###. ....# .#### #...# .####"},
    {'b', "#.... #.... ####. #...# #...# #...# ####."},
    {'c', "..... ..... .###. #...# #.... #...# .###."},
    {'d', "....# ....# .#### #...# #...# #...# .####"},
    {'e', "..... ..... .###. #...# ##### #.... .###."},
    {'f', "..##. .#... ####. .#... .#... .#... .#..."},
    {'g', "..... ..... .#### #...# #...# #...# .#### ....# .###."},
    {'h', "#.... #.... ####. #...# #...# #...# #...#"},
    {'i', "..#.. ..... .##.. ..#.. ..#.. ..#.. .###."},
    {'j', "...#. ..... ..##. ...#. ...#. ...#. ...#. #..#. .##.."},
    {'k', "#.... #.... #..#. #.#.. ##... #.#.. #..#."},
    {'l', ".##.. ..#.. ..#.. ..#.. ..#.. ..#.. .###."},
    {'m', "..... ..... ##.#. #.#.# #.#.# #.#.# #.#.#"},
    {'n', "..... ..... ####. #...# #...# #...# #...#"},
    {'o', "..... ..... .###. #...# #...# #...# .###."},
    {'p', "..... ..... ####. #...# #...# #...# ####. #.... #...."},
    {'q', "..... ..... .#### #...# #...# #...# .#### ....# ....#"},
    {'r', "..... ..... #.##. ##..# #.... #.... #...."},
    {'s', "..... ..... .#### #.... .###. ....# ####."},
    {'t', ".#... .#... ####. .#... .#... .#..# ..##."},
    {'u', "..... ..... #...# #...# #...# #...# .####"},
    {'v', "..... ..... #...# #...# #...# .#.#. ..#.."},
    {'w', "..... ..... #...# #.#.# #.#.# #.#.# .#.#."},
    {'x', "..... ..... #...# .#.#. ..#.. .#.#. #...#"},
    {'y', "..... ..... #...# #...# #...# #...# .#### ....# .###."},
    {'z', "..... ..... ##### ...#. ..#.. .#... #####"},
    {'.', "..... ..... ..... ..... ..... .##.. .##.."},
    {',', "..... ..... ..... ..... ..... .##.. .##.. ..#.. .#..."},
    {':', "..... .##.. .##.. ..... ..... .##.. .##.."},
    {'-', "..... ..... ..... ##### ..... ..... ....."},
    {'/', "....# ....# ...#. ..#.. .#... #.... #...."},
    {'#', ".#.#. .#.#. ##### .#.#. ##### .#.#. .#.#."},
    {'!', "..#.. ..#.. ..#.. ..#.. ..#.. ..... ..#.."},
    {'?', ".###. #...# ....# ...#. ..#.. ..... ..#.."},
};

bool has_point(char character, int row, int column) {
  for (const Glyph& glyph : kFont) {
    if (glyph.character != character) continue;
    const std::string_view rows = glyph.rows;
    const auto at = static_cast<size_t>(row * (kGlyphWidth + 1) + column);
    return at < rows.size() && rows[at] == '#';
  }
  return row < 7 && (row == 0 || row == 6 || column == 0 || column == kGlyphWidth - 1);
}

// Distributions of the standard library differ from one to the next; these do not.
double uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() >> 11) / 9007199254740992.0;
}
int64_t below(std::mt19937_64& random, int64_t count) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
}
template <typename Words>
auto one_of(std::mt19937_64& random, const Words& words) {
  return words[static_cast<size_t>(below(random, std::ssize(words)))];
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error(path + ": cannot write it");
}

std::string numbered(int64_t number) {
  char name[32];
  std::snprintf(name, sizeof(name), "%05lld", static_cast<long long>(number));
  return name;
}

constexpr std::array kNumbers = {std::pair{"zwei", "two"}, std::pair{"drei", "three"}, std::pair{"vier", "four"},
                                 std::pair{"sieben", "seven"}, std::pair{"zehn", "ten"}};
constexpr std::array kColours = {std::pair{"rote", "red"}, std::pair{"blaue", "blue"}, std::pair{"alte", "old"},
                                 std::pair{"neue", "new"}, std::pair{"kleine", "small"}};
constexpr std::array kThings = {std::pair{"Autos", "cars"},      std::pair{"Tische", "tables"},
                                std::pair{"Bilder", "pictures"}, std::pair{"Katzen", "cats"},
                                std::pair{"Lampen", "lamps"},    std::pair{"Briefe", "letters"}};
constexpr std::array kHeadings = {std::pair{"Haus", "House"}, std::pair{"Garten", "Garden"},
                                  std::pair{"Markt", "Market"}, std::pair{"Stadt", "Town"}};

}  // namespace

TextStyle random_style(std::mt19937_64& random) {
  TextStyle style;
  style.scale = uniform(random, 1.7, 2.3);
  style.slant = uniform(random, -0.05, 0.2);
  style.margin = 2 + static_cast<int>(below(random, 4));
  style.paper = uniform(random, 190, 250);
  style.ink = uniform(random, 0, 90);
  style.noise = uniform(random, 0, 14);
  return style;
}

GreyImage draw_text(const std::vector<std::string>& lines, const TextStyle& style, std::mt19937_64& random) {
  size_t longest = 1;
  for (const std::string& line : lines) longest = std::max(longest, line.size());
  const auto pixels = [&](double points) { return static_cast<int64_t>(std::ceil(points * style.scale)); };
  const double lean = std::abs(style.slant) * kGlyphRows;
  GreyImage image;
  image.height = pixels(static_cast<double>(kLineRows) * static_cast<double>(lines.size()) - 2) + 2 * style.margin;
  image.width = pixels(static_cast<double>(kAdvance) * static_cast<double>(longest) - 1 + lean) + 2 * style.margin;
  image.pixels.resize(static_cast<size_t>(image.height * image.width));
  const auto is_ink = [&](double x, double y) {  // in points
    const auto row = static_cast<int64_t>(std::floor(y)), line = row / kLineRows, in_line = row % kLineRows;
    if (y < 0 || line >= std::ssize(lines) || in_line >= kGlyphRows) return false;
    const double within = y - static_cast<double>(line * kLineRows);
    const double straight = x - style.slant * (kGlyphRows - within) - (style.slant < 0 ? lean : 0);
    if (straight < 0) return false;
    const auto column = static_cast<int64_t>(std::floor(straight)), letter = column / kAdvance;
    const std::string& text = lines[static_cast<size_t>(line)];
    return letter < std::ssize(text) && column % kAdvance < kGlyphWidth &&
           has_point(text[static_cast<size_t>(letter)], static_cast<int>(in_line), static_cast<int>(column % kAdvance));
  };
  constexpr int kSamples = 3;  // in each direction of a pixel
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      int ink = 0;
      for (int i = 0; i < kSamples * kSamples; ++i) {
        const double sub_x = (i % kSamples + 0.5) / kSamples, sub_y = (i / kSamples + 0.5) / kSamples;
        ink += is_ink((static_cast<double>(x - style.margin) + sub_x) / style.scale,
                      (static_cast<double>(y - style.margin) + sub_y) / style.scale);
      }
      const double share = static_cast<double>(ink) / (kSamples * kSamples);
      double noise = 0;  // about normal
      for (int i = 0; i < 4; ++i) noise += uniform(random, -0.87, 0.87);
      const double grey = style.paper + share * (style.ink - style.paper) + style.noise * noise;
      image.pixels[static_cast<size_t>(y * image.width + x)] = static_cast<uint8_t>(std::clamp(grey, 0.0, 255.0));
    }
  }
  return image;
}

void write_pgm(const std::string& path, const GreyImage& image) {
  std::string text = "P5\n" + std::to_string(image.width) + " " + std::to_string(image.height) + "\n255\n";
  text.append(image.pixels.begin(), image.pixels.end());
  write_text(path, text);
}

std::string random_line(std::mt19937_64& random) {
  static constexpr std::array kWords = {"the",   "green", "house", "coffee", "bread", "milk",   "window", "paper",
                                        "small", "river", "book",  "quick",  "Total", "Cash",   "Tax",    "Date",
                                        "JUNE",  "apple", "extra", "visit",  "Table", "orange", "zero",   "kind"};
  const auto number = [&](int64_t limit) { return std::to_string(below(random, limit)); };
  const auto price = [&] { return number(90) + "." + numbered(below(random, 100)).substr(3); };
  const auto word = [&] { return std::string(one_of(random, kWords)); };
  switch (below(random, 5)) {
    case 0: return word() + " " + price();
    case 1: return number(20) + " " + word() + " " + price();
    case 2: return "No. " + number(100000);
    case 3: return number(28) + "/" + number(12) + "/20" + numbered(below(random, 30)).substr(3);
    default: return word() + " " + word() + (below(random, 3) == 0 ? ":" : "");
  }
}

void make_line_folder(const std::string& folder, int64_t images, uint64_t seed) {
  std::filesystem::create_directories(folder + "/images");
  std::mt19937_64 random(seed);
  std::string table = "image\ttext\n";
  for (int64_t i = 0; i < images; ++i) {
    const std::string line = random_line(random), name = "images/" + numbered(i) + ".pgm";
    write_pgm(folder + "/" + name, draw_text({line}, random_style(random), random));
    table += name + "\t" + line + "\n";
  }
  write_text(folder + "/lines.tsv", table);
}

void make_page_folder(const std::string& folder, int64_t images, uint64_t seed) {
  for (const char* part : {"/imgs", "/texts"}) std::filesystem::create_directories(folder + part);
  std::mt19937_64 random(seed);
  std::array<std::string, 3> names;  // of the parts
  std::string pairs;
  for (int64_t i = 0; i < images; ++i) {
    const std::string name = "page" + numbered(i);
    const auto heading = one_of(random, kHeadings);
    std::vector<std::string> german = {heading.first, ""};
    std::string english = std::string("# ") + heading.second + "\n";
    for (int64_t line = 0; line < 2 + i % 2; ++line) {
      const auto number = one_of(random, kNumbers), colour = one_of(random, kColours), thing = one_of(random, kThings);
      german.push_back(std::string(number.first) + " " + colour.first + " " + thing.first);
      english += std::string("\n") + number.second + " " + colour.second + " " + thing.second + "\n";
    }
    write_pgm(folder + "/imgs/" + name + ".pgm", draw_text(german, random_style(random), random));
    write_text(folder + "/texts/" + name + ".mmd", english);
    const auto quoted = [](const std::string& text) {
      std::string json;
      for (const char c : text) json += c == '\n' ? "\\n" : std::string(1, c);
      return "\"" + json + "\"";
    };
    std::string lines;
    for (const std::string& line : german) lines += line + "\n";
    if (i % 10 < 8) pairs += "{\"source\": " + quoted(lines) + ", \"target\": " + quoted(english) + "}\n";
    std::string& part = names[i % 10 == 8 ? 1 : i % 10 == 9 ? 2 : 0];
    part += (part.empty() ? "\"" : ", \"") + name + "\"";
  }
  write_text(folder + "/texts.jsonl", pairs);
  write_text(folder + "/split.json", "{\"train_name_list\": [" + names[0] + "],\n \"valid_name_list\": [" + names[1] +
                                         "],\n \"test_name_list\": [" + names[2] + "]}\n");
}

void make_digit_folder(const std::string& folder, int64_t images, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < images + images / 5; ++i) {
    const std::string digit(1, static_cast<char>('0' + i % 10));
    const std::string place = folder + (i < images ? "/train/" : "/test/") + digit;
    std::filesystem::create_directories(place);
    write_pgm(place + "/" + numbered(i) + ".pgm", draw_text({digit}, random_style(random), random));
  }
}

}  // namespace brisk::test
