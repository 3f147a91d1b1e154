// Tiles of bf16 or f16 in shared memory for the tensor cores: rows of one head, kWidth columns (the head's width
// rounded up, zeros beyond). Eight elements more a row keep the eight rows that one instruction reads in different
// banks.
//
//   SharedTile<64> k{memory};
//   k.copy<64>(keys, stride, existing_rows, head_width);  commit_copies();  ...  // all threads
//   k.right_operand(b, 16, 32);                                                   // of a product with K^T
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "ops/cuda_instructions.cuh"
#include "tensor/dtype.h"

namespace brisk::cuda {

template <int kWidth, typename T = bf16_t>
struct SharedTile {
  static constexpr int kStride = kWidth + 8;
  static constexpr int64_t bytes(int rows) { return int64_t{rows} * kStride * 2; }
  T* data;

  __device__ T* at(int row, int column) const { return data + row * kStride + column; }

  // Starts to copy rows [0, kRows) of a head from `global`; zeros in rows from `existing` on.
  template <int kRows>
  __device__ void copy(const T* global, int64_t stride, int existing, int head_width) const {
    constexpr int kChunks = kWidth / 8;
    for (int i = threadIdx.x; i < kRows * kChunks; i += blockDim.x) {
      const int row = i / kChunks, column = i % kChunks * 8;
      const bool exists = row < existing && column < head_width;
      copy_async(at(row, column), exists ? global + row * stride + column : global, exists);
    }
  }

  // Rows [row, row + 16), columns [column, column + 16) as the left operand.
  __device__ void left_operand(uint32_t (&a)[4], int row, int column) const {
    const int lane = threadIdx.x % 32;
    load_matrices(a, at(row + lane % 16, column + lane / 16 * 8));
  }
  // Rows [row, row + 16), columns [column, column + 16), transposed: right operands b[0], b[1] for the product's
  // columns row .. row + 7, b[2], b[3] for row + 8 .. row + 15.
  __device__ void right_operand_transposed(uint32_t (&b)[4], int row, int column) const {
    const int lane = threadIdx.x % 32;
    load_matrices(b, at(row + lane % 8 + lane / 16 * 8, column + lane / 8 % 2 * 8));
  }
  // The same rows and columns as they are: b[0], b[1] for the product's columns column .. column + 7, b[2], b[3] for
  // the next eight.
  __device__ void right_operand(uint32_t (&b)[4], int row, int column) const {
    const int lane = threadIdx.x % 32;
    load_matrices_transposed(b, at(row + lane % 16, column + lane / 16 * 8));
  }
};

// What a product leaves in registers, [16, 8 kTiles], as left operands of the next: `step` counts 16 columns.
template <typename T = bf16_t, int kTiles>
__device__ void as_left_operand(uint32_t (&a)[4], const float (&c)[kTiles][4], int step) {
  a[0] = pack_pair<T>(c[2 * step][0], c[2 * step][1]);
  a[1] = pack_pair<T>(c[2 * step][2], c[2 * step][3]);
  a[2] = pack_pair<T>(c[2 * step + 1][0], c[2 * step + 1][1]);
  a[3] = pack_pair<T>(c[2 * step + 1][2], c[2 * step + 1][3]);
}

}  // namespace brisk::cuda
