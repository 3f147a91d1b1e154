// The last stage of sums over rows: partial [parts, cols], one sum of each block, into [cols] in a fixed order.
//
//   launch(add_parts_kernel, add_parts_shape(cols, 1), PartSums{partial, parts, cols, cols, {out}, {adds}});
//   partial [parts, 2, cols]: add_parts_shape(cols, 2), PartSums{partial, parts, 2 * cols, cols, {a, b}, {...}}
#pragma once

#include "base/rounding.h"
#include "ops/cuda/cuda_launch.cuh"

namespace brisk::cuda {

struct PartSums {
  const float* partial;
  int64_t parts, stride, cols;  // stride: from one part to the next; the next result is `cols` behind
  float* out[3];                // or none
  bool adds[3];
};

constexpr int kPartThreads = 1024;

inline Launch add_parts_shape(int64_t cols, int64_t results) {
  return {.blocks = divide_up(cols, 32), .blocks_y = results, .threads = kPartThreads};
}

// Each warp of a block sums every 32nd part of 32 columns, several on their way at once; then the warps' sums are added
// in order.
static __global__ void __launch_bounds__(kPartThreads) add_parts_kernel(const PartSums a) {
  constexpr int kWarps = kPartThreads / 32;
  __shared__ float shared[kWarps][32];
  float* const out = a.out[blockIdx.y];
  if (out == nullptr) return;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t col = static_cast<int64_t>(blockIdx.x) * 32 + lane;
  const float* partial = a.partial + blockIdx.y * a.cols + col;
  float sum = 0;
  if (col < a.cols) {
#pragma unroll 8
    for (int64_t part = warp; part < a.parts; part += kWarps) sum += partial[part * a.stride];
  }
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || col >= a.cols) return;
  float total = a.adds[blockIdx.y] ? out[col] : 0.0f;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) total += shared[w][lane];
  out[col] = total;
}

}  // namespace brisk::cuda
