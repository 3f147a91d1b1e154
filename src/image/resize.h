// The two passes of an antialiased resize, as PIL does them: along the rows, then along the columns, each rounded to 8 bits.
// The weights are whole numbers, so every implementation gives the same pixels. (Pillow from 13 on takes the columns first where
// that is less work. The models that there are saw images of the versions before, which never do.)
#pragma once

#include <cstdint>
#include <vector>

#include "image/image.h"
#include "image/image_input.h"

namespace brisk {

// Of each output pixel: a weighted sum of the `count` input pixels from `first` on.
struct ResizeWeights {
  static constexpr int kBits = 22;  // 32 for the sum, less 8 of a pixel, less 2 for weights that add up to more than 1

  struct Span {
    int64_t first, count;
  };
  std::vector<Span> spans;      // [out]
  int64_t stride = 0;           // the longest span
  std::vector<int32_t> values;  // [out, stride], in units of 2^-kBits

  const int32_t* of(int64_t out) const { return values.data() + out * stride; }
};

ResizeWeights resize_weights(int64_t in, int64_t out, Resampling resampling);

// `out` has its size: of resize_rows the height, of resize_columns the width of `in`.
namespace ref {
void resize_rows(const Image& in, const ResizeWeights& weights, Image& out);
void resize_columns(const Image& in, const ResizeWeights& weights, Image& out);
}  // namespace ref
namespace avx2 {
void resize_rows(const Image& in, const ResizeWeights& weights, Image& out);
void resize_columns(const Image& in, const ResizeWeights& weights, Image& out);
}  // namespace avx2

}  // namespace brisk
