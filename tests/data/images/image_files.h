// Images of one colour each, which says which one it is, and tables of them.
#pragma once

#include <string>

#include "image/image_file.h"
#include "support/scratch_folder.h"

namespace brisk::test {

inline Image plain_image(int64_t height, int64_t width, uint8_t color) {
  Image image(height, width);
  std::fill(image.pixels.begin(), image.pixels.end(), color);
  return image;
}

// imgs/0.ppm, imgs/1.ppm, ... of 10 x 10 pixels, with the colours 0, 1, ...
inline void write_images(const ScratchFolder& folder, int count, const std::string& below = "imgs") {
  std::filesystem::create_directories(folder / below);
  for (int i = 0; i < count; ++i)
    write_ppm(folder / below + "/" + std::to_string(i) + ".ppm", plain_image(10, 10, static_cast<uint8_t>(i)));
}

}  // namespace brisk::test
