// Tiles of bf16 or f16 in shared memory for the tensor cores: rows of one head, kWidth columns (the head's width
// rounded up, zeros beyond). Eight elements more a row keep the eight rows that one instruction reads in different
// banks.
//
//   SharedTile<64> k{memory};
//   k.copy<64, 128>(keys, stride, existing_rows, head_width);  commit_copies();  ...  // all 128 threads
//   k.right_operand_transposed(b, 16, 32);                                            // of a product with K^T
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "ops/cuda/cuda_instructions.cuh"
#include "tensor/dtype.h"

namespace brisk::cuda {

// Rows [0, kRows) of `global`, kPieces pieces of 16 bytes each, into a tile whose rows eight apart lie alike. A thread
// has the same piece of several rows, so that its addresses are sums: they once took more instructions than softmax.
template <int kRows, int kThreads, int kPieces, typename Tile, typename T>
__device__ inline void copy_tile_rows(const Tile& to, const T* global, int64_t stride, int existing, int head_width) {
  if constexpr (kThreads % (8 * kPieces) == 0) {
    constexpr int kAtOnce = kThreads / kPieces;
    static_assert(kRows % kAtOnce == 0);
    const int row = static_cast<int>(threadIdx.x) / kPieces, column = static_cast<int>(threadIdx.x) % kPieces * 8;
    const int rows_left = column < head_width ? existing - row : 0;
    const T* from = global + row * stride + column;
    T* place = to.at(row, column);
#pragma unroll
    for (int i = 0; i < kRows / kAtOnce; ++i) {
      // What does not exist is not read.
      copy_async(place + i * kAtOnce * Tile::kStride, from, i * kAtOnce < rows_left);
      from += kAtOnce * stride;
    }
  } else {
    for (int i = threadIdx.x; i < kRows * kPieces; i += kThreads) {
      const int row = i / kPieces, column = i % kPieces * 8;
      const bool exists = row < existing && column < head_width;
      copy_async(to.at(row, column), exists ? global + row * stride + column : global, exists);
    }
  }
}

template <int kWidth, typename T = bf16_t>
struct SharedTile {
  static constexpr int kStride = kWidth + 8;
  static constexpr int64_t bytes(int rows) { return int64_t{rows} * kStride * 2; }
  T* data;

  __device__ T* at(int row, int column) const { return data + row * kStride + column; }

  // Starts to copy rows [0, kRows) of a head from `global`, by a block of kThreads; zeros in rows from `existing` on.
  template <int kRows, int kThreads>
  __device__ void copy(const T* global, int64_t stride, int existing, int head_width) const {
    copy_tile_rows<kRows, kThreads, kWidth / 8>(*this, global, stride, existing, head_width);
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
