#include <algorithm>

#include "base/runtime.h"
#include "ops/element.h"
#include "ops/pixels/pixel_rows.h"

namespace brisk {

namespace {

void convert_pixels(const PixelRowsForward& op, int64_t begin, int64_t end) {
  const int64_t area = op.options.patch * op.options.patch, cols = 3 * area;
  for (int64_t row = begin; row < end; ++row) {
    const bool is_class_row = op.options.class_row && op.rows.position[row] == 0;
    for (int64_t c = 0; c < 3; ++c) {
      const auto color = static_cast<size_t>(c);
      const float mean = op.options.mean[color], std = op.options.std[color];
      const uint8_t* pixels = op.pixels + row * cols + c * area;
      const auto number = [&](int64_t p) {
        return is_class_row ? 0.0f : (static_cast<float>(pixels[p]) / 255.0f - mean) / std;
      };
      if (op.y.type == DType::f32) {
        float* y = op.y.f32() + row * op.y.stride + c * area;
        for (int64_t p = 0; p < area; ++p) y[p] = number(p);
      } else {
        for (int64_t p = 0; p < area; ++p) set_element(op.y, row, c * area + p, number(p));
      }
    }
  }
}

}  // namespace

namespace ref {
void pixel_rows(const PixelRowsForward& op) { convert_pixels(op, 0, op.y.rows); }
}  // namespace ref

namespace cpu {  // the first product multiplies each of these numbers hundreds of times: no kernels of its own
void pixel_rows(const PixelRowsForward& op) {
  constexpr int64_t kPixelsOfAThread = 16384;  // a hand-over takes some microseconds
  const int64_t grain = std::max<int64_t>(1, kPixelsOfAThread / op.y.cols);
  thread_pool().for_range(op.y.rows, grain, [&](int64_t begin, int64_t end, int) { convert_pixels(op, begin, end); });
}
}  // namespace cpu

}  // namespace brisk
