// Tiles of bf16 in shared memory as Hopper's matrix instructions read them: rows of one head, 64 columns (zeros beyond
// its width), in 16-byte pieces that are swizzled (ops/cuda/cuda_warpgroup.cuh).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "ops/attention/cuda/attention_tile_cuda.cuh"
#include "ops/cuda/cuda_instructions.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/cuda/cuda_warpgroup.cuh"
#include "tensor/dtype.h"

namespace brisk::cuda {

struct SwizzledTile {
  static constexpr int kStride = 64;
  static constexpr int64_t bytes(int rows) { return int64_t{rows} * kStride * 2; }
  char* data;  // aligned to 1024 bytes

  __device__ bf16_t* at(int row, int column) const {
    return reinterpret_cast<bf16_t*>(data + row * 128 + ((column / 8) ^ (row % 8)) * 16 + column % 8 * 2);
  }
  // Starts to copy rows [0, kRows) of a head from `global`, by a block of kThreads; zeros in rows from `existing` on.
  template <int kRows, int kThreads>
  __device__ void copy(const bf16_t* global, int64_t stride, int existing, int head_width) const {
    copy_tile_rows<kRows, kThreads, 8>(*this, global, stride, existing, head_width);
  }
  // Rows from `row` (a multiple of 8) on, columns from 16 `step` on.
  __device__ uint64_t matrix(int row, int step) const { return swizzled_matrix(data, row * 128 + step * 32); }
};

// c = 64 rows of a from `row` on times 64 rows of b, transposed.
__device__ inline void row_products(WarpgroupSums& c, const SwizzledTile& a, int row, const SwizzledTile& b) {
#pragma unroll
  for (int step = 0; step < 4; ++step) multiply_shared(c, a.matrix(row, step), b.matrix(0, step), step > 0);
}

// The rounded sums of 64 columns as left operands of the next product.
struct LeftOperands {
  uint32_t v[4][4];
};
__device__ inline LeftOperands rounded(const WarpgroupSums& c) {
  LeftOperands a;
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    a.v[step][0] = pack_bf16(c[2 * step][0], c[2 * step][1]);
    a.v[step][1] = pack_bf16(c[2 * step][2], c[2 * step][3]);
    a.v[step][2] = pack_bf16(c[2 * step + 1][0], c[2 * step + 1][1]);
    a.v[step][3] = pack_bf16(c[2 * step + 1][2], c[2 * step + 1][3]);
  }
  return a;
}

// c += a [64, 64] times 64 rows of b.
__device__ inline void add_weighted_rows(WarpgroupSums& c, const LeftOperands& a, const SwizzledTile& b) {
#pragma unroll
  for (int step = 0; step < 4; ++step) multiply_registers(c, a.v[step], b.matrix(step * 16, 0));
}

// The block's shared memory from the next multiple of 1024 on: 1023 bytes more are asked for.
__device__ inline char* swizzled_shared() {
  char* memory = dynamic_shared();
  return memory + (1024 - shared_address(memory) % 1024) % 1024;
}

}  // namespace brisk::cuda
