// An image in memory: 8 bits a channel, red, green and blue side by side, the rows from the top.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brisk {

constexpr int64_t kColors = 3;

struct Image {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]

  Image() = default;
  Image(int64_t height, int64_t width)  // black
      : height(height), width(width), pixels(static_cast<size_t>(height * width * kColors), 0) {}

  uint8_t* row(int64_t y) { return pixels.data() + y * width * kColors; }
  const uint8_t* row(int64_t y) const { return pixels.data() + y * width * kColors; }
  bool operator==(const Image&) const = default;
};

}  // namespace brisk
