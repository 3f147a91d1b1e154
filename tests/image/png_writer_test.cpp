#include "image/png_writer.h"

#include <gtest/gtest.h>

#include "image/image_file.h"

namespace brisk {
namespace {

Image read_back(const Image& image) {
  const std::string bytes = png_bytes(image);
  return decode_image({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "image.png");
}

TEST(PngBytes, AreReadAsTheImageTheyAreOf) {
  Image image(5, 7);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(31 * i);
  EXPECT_EQ(read_back(image), image);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(5 * (i / 3));
  EXPECT_EQ(read_back(image), image) << "grey";
}

TEST(PngBytes, OfGreyImagesHaveNoColours) {
  Image grey(64, 64), colours(64, 64);
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    grey.pixels[i] = static_cast<uint8_t>(131 * (i / 3) * (i / 3));
    colours.pixels[i] = static_cast<uint8_t>(131 * i * i);
  }
  EXPECT_LT(2 * png_bytes(grey).size(), png_bytes(colours).size() + 200);
}

}  // namespace
}  // namespace brisk
