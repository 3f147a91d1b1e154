#include <algorithm>

#include "image/resize.h"

namespace brisk::ref {

namespace {

uint8_t rounded_color(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> ResizeWeights::kBits, 0, 255)); }

}  // namespace

void resize_rows(const Image& in, const ResizeWeights& weights, Image& out) {
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x) {
      const auto [first, count] = weights.spans[static_cast<size_t>(x)];
      for (int64_t color = 0; color < kColors; ++color) {
        int32_t sum = 1 << (ResizeWeights::kBits - 1);
        for (int64_t i = 0; i < count; ++i) sum += weights.of(x)[i] * in.row(y)[(first + i) * kColors + color];
        out.row(y)[x * kColors + color] = rounded_color(sum);
      }
    }
  }
}

void resize_columns(const Image& in, const ResizeWeights& weights, Image& out) {
  for (int64_t y = 0; y < out.height; ++y) {
    const auto [first, count] = weights.spans[static_cast<size_t>(y)];
    for (int64_t x = 0; x < out.width * kColors; ++x) {
      int32_t sum = 1 << (ResizeWeights::kBits - 1);
      for (int64_t i = 0; i < count; ++i) sum += weights.of(y)[i] * in.row(first + i)[x];
      out.row(y)[x] = rounded_color(sum);
    }
  }
}

}  // namespace brisk::ref
