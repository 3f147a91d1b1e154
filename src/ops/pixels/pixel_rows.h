// pixel_rows: the pixels of patches as numbers that a product reads.
//
//   y[r, c P P + p] = (x[r, c P P + p] / 255 - mean[c]) / std[c]      c: the colour
//
// A class row, the first of each sequence, is 0. There is no gradient.
//
//   Value patches = pixel_rows(tape, 0, {.patch = 16, .mean = {.5f, .5f, .5f}, .std = {.5f, .5f, .5f}});   // on the tape
#pragma once

#include <array>
#include <cstdint>

#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

struct PixelRowsOptions {
  int64_t patch = 16;  // P
  std::array<float, 3> mean = {0.5f, 0.5f, 0.5f}, std = {0.5f, 0.5f, 0.5f};
  bool class_row = false;
};

struct PixelRowsForward {
  PixelRowsOptions options;
  const uint8_t* pixels = nullptr;  // [N, 3 P P]
  RowSet rows;                      // its positions tell the class rows
  Tensor y;                         // [N, 3 P P] f32, bf16 or f16
};

namespace ref {
void pixel_rows(const PixelRowsForward& op);
}  // namespace ref
namespace cpu {
void pixel_rows(const PixelRowsForward& op);
}  // namespace cpu
namespace cuda {
void pixel_rows(const PixelRowsForward& op);
}  // namespace cuda

}  // namespace brisk
