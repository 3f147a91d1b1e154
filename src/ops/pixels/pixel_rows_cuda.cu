// A thread has one number.
#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/pixels/pixel_rows.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

struct ColorNumbers {
  float mean[3], std[3];
};

__global__ void pixel_rows_kernel(const uint8_t* pixels, const int32_t* position, Tensor y, int64_t area,
                                  bool class_row, ColorNumbers numbers) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= y.rows * y.cols) return;
  const int64_t row = at / y.cols, col = at % y.cols, color = col / area;
  const bool is_class_row = class_row && position[row] == 0;
  const float number =
      is_class_row ? 0.0f : (static_cast<float>(pixels[at]) / 255.0f - numbers.mean[color]) / numbers.std[color];
  store_any(y, row * y.stride + col, Floats<1>{{number}});
}

}  // namespace

void pixel_rows(const PixelRowsForward& op) {
  ColorNumbers numbers;
  for (int c = 0; c < 3; ++c) {
    numbers.mean[c] = op.options.mean[static_cast<size_t>(c)];
    numbers.std[c] = op.options.std[static_cast<size_t>(c)];
  }
  launch(pixel_rows_kernel, {.blocks = divide_up(op.y.rows * op.y.cols, kThreads), .threads = kThreads}, op.pixels,
         op.rows.position, op.y, op.options.patch * op.options.patch, op.options.class_row, numbers);
}

}  // namespace brisk::cuda
