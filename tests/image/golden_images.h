// What Pillow and Hugging Face's processors make of images (scripts/make_image_golden.py), and the images it is made of.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files/files.h"
#include "base/parse_json.h"
#include "base/text/base64.h"
#include "image/image.h"

namespace brisk::test {

inline const nlohmann::ordered_json& golden_images() {
  static const auto golden =
      parse_json(read_file(BRISK_IMAGE_GOLDEN "/images.json", file_kind::config), "images.json", "");
  return golden;
}

// As the script's pattern().
inline Image pattern(int64_t height, int64_t width, int64_t margin = 0) {
  Image image(height, width);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const bool inside = y >= margin && y < height - margin && x >= margin && x < width - margin;
      for (int64_t c = 0; c < kColors; ++c) {
        const int64_t value = 5 * x + 3 * y + 40 * c + (x * x * 37 + y * y * 91 + x * y * 53 + c * 101) % 97;
        image.row(y)[x * kColors + c] = static_cast<uint8_t>(inside ? value % 256 : 250 - (x + y) % 5);
      }
    }
  }
  return image;
}

inline std::vector<uint8_t> bytes_of(const nlohmann::ordered_json& base64) {
  const std::string bytes = decode_base64(base64.get<std::string>()).value();
  return {bytes.begin(), bytes.end()};
}

// The largest difference of two colours; 256 where the sizes differ.
inline int largest_gap(const std::vector<uint8_t>& one, const std::vector<uint8_t>& other) {
  if (one.size() != other.size()) return 256;
  int gap = 0;
  for (size_t i = 0; i < one.size(); ++i) gap = std::max(gap, std::abs(int{one[i]} - int{other[i]}));
  return gap;
}

}  // namespace brisk::test
