#include "image/image_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "image/decoders.h"
#include "image/golden_images.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::bytes_of;
using test::golden_images;
using test::message_of;

const nlohmann::ordered_json& golden_file(const std::string& name) {
  for (const auto& file : golden_images()["files"]) {
    if (file["name"] == name) return file;
  }
  throw std::runtime_error(name);
}

std::string refusal(const std::vector<uint8_t>& bytes) {
  return message_of<UserError>([&] { decode_image(bytes, "a.png"); });
}
std::string refusal(std::string_view text) { return refusal(std::vector<uint8_t>(text.begin(), text.end())); }

#define EXPECT_SAYS(text, part) EXPECT_PRED2(test::has, text, part)

TEST(ImageFiles, HaveThePixelsThatPillowGives) {
  for (const auto& file : golden_images()["files"]) {
    const auto name = file["name"].get<std::string>();
    if (name.ends_with(".webp") && !webp_missing().empty()) continue;
    const Image image = decode_image(bytes_of(file["file"]), name);
    EXPECT_EQ(image.height, file["height"]) << name;
    EXPECT_EQ(image.width, file["width"]) << name;
    // Versions of these libraries may round differently.
    const int allowed = name.ends_with(".jpg") || name == "lossy.webp" ? 1 : 0;
    EXPECT_LE(test::largest_gap(image.pixels, bytes_of(file["pixels"])), allowed) << name;
    const ImageHeader header = image_header(bytes_of(file["file"]), name);
    EXPECT_EQ(header.height, image.height) << name;
    EXPECT_EQ(header.width, image.width) << name;
  }
}

// Pillow cuts these at 255, so that they are white.
TEST(ImageFiles, OfSixteenBitGreyKeepTheirHighBytes) {
  const std::string pgm("P5 2 1 65535 \x12\x34\xFF\xFF", 17);
  EXPECT_EQ(decode_image({reinterpret_cast<const uint8_t*>(pgm.data()), pgm.size()}, "a").pixels,
            (std::vector<uint8_t>{0x12, 0x12, 0x12, 0xFF, 0xFF, 0xFF}));
}

TEST(ImageFiles, ThatEndEarlyAreRefusedWhereverTheyEnd) {
  for (const auto& file : golden_images()["files"]) {
    const auto name = file["name"].get<std::string>();
    const bool webp = name.ends_with(".webp");
    if (webp && !webp_missing().empty()) continue;
    std::vector<uint8_t> bytes = bytes_of(file["file"]);
    // What follows the last pixels may be missing; text may end after any digit.
    const size_t unread = name.ends_with(".png") ? 12 + 4 : name.ends_with(".jpg") ? 4 : 2;
    bytes.resize(bytes.size() - unread);
    for (; bytes.size() > 4; bytes.resize(bytes.size() - std::min<size_t>(bytes.size() - 4, 7))) {
      if (name.starts_with("text")) bytes.resize(std::min<size_t>(bytes.size(), 12));
      EXPECT_NE(refusal(bytes), "") << name << " of " << bytes.size() << " bytes";
    }
  }
}

TEST(ImageFiles, ThatAreNoneAreCalledWhatTheyAre) {
  EXPECT_SAYS(refusal(""), "a.png: the file is empty");
  EXPECT_SAYS(refusal("GIF89a......"), "it is a GIF image; expected an image: PNG, JPEG, WebP, PPM or PGM");
  EXPECT_SAYS(refusal("%PDF-1.5"), "a PDF document");
  EXPECT_SAYS(refusal("version https://git-lfs.github.com/spec/v1"), "Git LFS");
  EXPECT_SAYS(refusal("hello"), "it is no image");
}

TEST(ImageFiles, OfNoPixelsOrTooManyAreRefusedByTheirHeaders) {
  EXPECT_SAYS(refusal("P6 0 5 255 "), "an image of 0 x 5 pixels; expected at least one");
  EXPECT_SAYS(refusal("P6 100000 100000 255 "), "100000 x 100000 pixels; brisk reads images of up to 178956970 pixels");
  std::vector<uint8_t> png = bytes_of(golden_file("rgb.png")["file"]);
  png[18] = 0x20;  // 8,201 pixels wide
  png[22] = 0x20;  // and 8,199 high
  EXPECT_SAYS(refusal(png), "bytes are too few for 8201 x 8199 pixels");
}

TEST(ImageFiles, ThatAreDamagedAreRefused) {
  std::vector<uint8_t> png = bytes_of(golden_file("rgb.png")["file"]);
  png[png.size() - 20] ^= 0x40;
  EXPECT_SAYS(refusal(png), "a.png: the image cannot be read: ");
  std::vector<uint8_t> jpeg = bytes_of(golden_file("rgb.jpg")["file"]);
  jpeg[5] = 0;  // the length of the first segment
  jpeg[4] = 0;
  EXPECT_SAYS(refusal(jpeg), "a.png: the image cannot be read: ");
}

TEST(ImageFiles, AreReadFromTheirFolder) {
  const test::ScratchFolder folder;
  const Image image = test::pattern(5, 4);
  write_ppm(folder / "a.ppm", image);
  EXPECT_EQ(read_image(folder / "a.ppm"), image);
  EXPECT_EQ(read_image_header(folder / "a.ppm").width, 4);
  EXPECT_SAYS(message_of<UserError>([&] { read_image(folder / "b.png"); }), "b.png");
  EXPECT_SAYS(message_of<UserError>([&] { read_image(folder.path()); }), folder.path());
}

// A camera writes a preview before the frame header.
TEST(ImageFiles, HeadersMayLieFarIntoAJpegFile) {
  const std::vector<uint8_t> jpeg = bytes_of(golden_file("rgb.jpg")["file"]);
  std::string bytes(jpeg.begin(), jpeg.begin() + 2);
  bytes += std::string("\xFF\xE1\xFF\xFF", 4) + std::string(65533, 'x');
  bytes.append(jpeg.begin() + 2, jpeg.end());
  const test::ScratchFolder folder;
  const ImageHeader header = read_image_header(folder.write("a.jpg", bytes));
  EXPECT_EQ(header.format, ImageFormat::jpeg);
  EXPECT_EQ(header.height, 7);
}

TEST(ImageFiles, AreKnownByTheirNames) {
  for (const char* name : {"a.png", "b/c.JPG", "d.jpeg", "e.webp", "f.ppm", "g.pgm"}) EXPECT_TRUE(is_image_file(name));
  for (const char* name : {"a.gif", "png", "a.png.txt", ""}) EXPECT_FALSE(is_image_file(name));
}

}  // namespace
}  // namespace brisk
