#include <cuda_fp8.h>

#include <algorithm>

#include "ops/cuda/column_sums_cuda.cuh"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/gemm/cuda/fp8_cuda.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kTileRows = static_cast<int>(kFp8TileRows), kTileCols = 128;
constexpr int kThreadsOfRow = kTileCols / 8;
static_assert(kTileRows * kTileCols == 32 * kThreads);
constexpr int kPitch = kTileCols + 8;  // bytes between rows of a tile in shared memory

__device__ float largest_of_block(float value) {
  __shared__ float largest[kThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, distance));
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = value;
  __syncthreads();
  value = largest[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) value = fmaxf(value, largest[warp]);
  return value;
}

struct Fp8Pass {
  const void* from;
  int64_t rows, cols, stride;
  int64_t padded_rows;
  int partials;
  float* partial;
  float* scale;
  uint8_t* out;
  uint8_t* transposed;
  float* sums;  // [tiles of rows, cols], or none
  int64_t blocks, blocks_of_row;
};

// One or two matrices: the blocks of the first come first.
struct Fp8Passes {
  Fp8Pass pass[2];
};

// Each block's largest size. Of NaN nothing is seen here: it stays one in eight bits.
template <typename T>
__global__ void __launch_bounds__(kThreads) largest_kernel(const Fp8Passes passes) {
  const bool is_second = static_cast<int>(blockIdx.x) >= passes.pass[0].partials;
  const Fp8Pass& pass = passes.pass[is_second ? 1 : 0];
  const int block = static_cast<int>(blockIdx.x) - (is_second ? passes.pass[0].partials : 0);
  const T* from = static_cast<const T*>(pass.from);
  const auto eights_of_row = static_cast<uint32_t>(pass.cols / 8);
  const int64_t eights = pass.rows * eights_of_row;
  float largest = 0;
  for (int64_t at = static_cast<int64_t>(block) * kThreads + threadIdx.x; at < eights;
       at += static_cast<int64_t>(pass.partials) * kThreads) {
    const int64_t row = eights < (int64_t{1} << 32) ? static_cast<uint32_t>(at) / eights_of_row : at / eights_of_row;
    const Floats<8> v = load<8>(from + row * pass.stride + (at - row * eights_of_row) * 8);
#pragma unroll
    for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(v.v[i]));
  }
  largest = largest_of_block(largest);
  if (threadIdx.x == 0) pass.partial[block] = largest;
}

template <__nv_fp8_interpretation_t kFormat>
__device__ uint32_t four_bytes(float a, float b, float c, float d) {
  const uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, kFormat);
  const uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, kFormat);
  return low | high << 16;
}

// A block has a tile. Rows leave as they come; columns by way of shared memory.
template <typename T, __nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kThreads) to_fp8_kernel(const Fp8Passes passes) {
  const bool is_second = static_cast<int64_t>(blockIdx.x) >= passes.pass[0].blocks;
  const Fp8Pass& pass = passes.pass[is_second ? 1 : 0];
  const int64_t block = static_cast<int64_t>(blockIdx.x) - (is_second ? passes.pass[0].blocks : 0);
  const int64_t row_tile = block / pass.blocks_of_row, col_tile = block % pass.blocks_of_row;
  const T* from = static_cast<const T*>(pass.from);
  __shared__ __align__(16) uint8_t tile[kTileRows * kPitch];
  float largest = 0;
  for (int i = threadIdx.x; i < pass.partials; i += kThreads) largest = fmaxf(largest, pass.partial[i]);
  largest = fmaxf(largest_of_block(largest), 1e-30f);
  constexpr float kMost = kFormat == __NV_E4M3 ? 448.0f : 57344.0f;
  if (block == 0 && threadIdx.x == 0) *pass.scale = largest / kMost;
  const float factor = kMost / largest;

  const int64_t first_row = row_tile * kTileRows, first_col = col_tile * kTileCols;
  const int col = threadIdx.x % kThreadsOfRow * 8;
  Floats<8> sums = {};
#pragma unroll
  for (int row = threadIdx.x / kThreadsOfRow; row < kTileRows; row += kThreads / kThreadsOfRow) {
    uint2 bytes = make_uint2(0, 0);
    if (first_row + row < pass.rows && first_col + col < pass.cols) {
      const Floats<8> v = load<8>(from + (first_row + row) * pass.stride + first_col + col);
#pragma unroll
      for (int i = 0; i < 8; ++i) sums.v[i] += v.v[i];
      bytes.x = four_bytes<kFormat>(v.v[0] * factor, v.v[1] * factor, v.v[2] * factor, v.v[3] * factor);
      bytes.y = four_bytes<kFormat>(v.v[4] * factor, v.v[5] * factor, v.v[6] * factor, v.v[7] * factor);
      if (pass.out != nullptr) {
        *reinterpret_cast<uint2*>(pass.out + (first_row + row) * pass.cols + first_col + col) = bytes;
      }
    }
    *reinterpret_cast<uint2*>(tile + row * kPitch + col) = bytes;
  }
  if (pass.sums != nullptr) {
    __shared__ float shared[kThreads / kThreadsOfRow][kTileCols];
    for (int i = 0; i < 8; ++i) shared[threadIdx.x / kThreadsOfRow][col + i] = sums.v[i];
    __syncthreads();
    if (threadIdx.x < kTileCols && first_col + threadIdx.x < pass.cols) {
      float sum = 0;
      for (int i = 0; i < kThreads / kThreadsOfRow; ++i) sum += shared[i][threadIdx.x];
      pass.sums[row_tile * pass.cols + first_col + threadIdx.x] = sum;
    }
  }
  if (pass.transposed == nullptr) return;
  __syncthreads();
  // A thread has 32 rows of a column: as many neighbouring bytes of the transpose.
  const int column = threadIdx.x % kTileCols;
  if (first_col + column >= pass.cols) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = threadIdx.x / kTileCols * 32 + half * 16;
    if (first_row + row >= pass.padded_rows) return;
    uint32_t words[4];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      words[word] = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        words[word] |= static_cast<uint32_t>(tile[(row + word * 4 + i) * kPitch + column]) << (8 * i);
      }
    }
    *reinterpret_cast<uint4*>(pass.transposed + (first_col + column) * pass.padded_rows + first_row + row) =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
}

Fp8Pass pass_of(const ToFp8& op) {
  const int64_t eights = op.from.rows * op.from.cols / 8;
  const int64_t blocks_of_row = divide_up(op.from.cols, kTileCols);
  return {op.from.data,
          op.from.rows,
          op.from.cols,
          op.from.stride,
          round_up(op.from.rows, kFp8Multiple),
          static_cast<int>(std::clamp<int64_t>(divide_up(eights, kThreads), 1, kMostFp8Partials)),
          op.partial,
          op.scale,
          static_cast<uint8_t*>(op.rows),
          static_cast<uint8_t*>(op.columns),
          op.sums != nullptr ? op.sums_partial : nullptr,
          divide_up(op.from.rows, kTileRows) * blocks_of_row,
          blocks_of_row};
}

template <typename T>
void run(const Fp8Passes& passes, DType type) {
  const Fp8Pass &first = passes.pass[0], &second = passes.pass[1];
  launch(largest_kernel<T>, {.blocks = first.partials + second.partials, .threads = kThreads}, passes);
  const Launch shape{.blocks = first.blocks + second.blocks, .threads = kThreads};
  if (type == DType::e4m3) {
    launch(to_fp8_kernel<T, __NV_E4M3>, shape, passes);
  } else {
    launch(to_fp8_kernel<T, __NV_E5M2>, shape, passes);
  }
}

void run_passes(const Fp8Passes& passes, const ToFp8& like) {
  if (like.from.type == DType::bf16) {
    run<bf16_t>(passes, like.type);
  } else {
    run<float>(passes, like.type);
  }
}

}  // namespace

void to_fp8(const ToFp8& op) {
  expect(fits_fp8(op.from) && op.from.rows > 0, "a matrix that eight bits do not fit");
  const Fp8Passes passes{{pass_of(op), {}}};
  run_passes(passes, op);
  if (op.sums == nullptr) return;
  launch(
      add_parts_kernel, add_parts_shape(op.from.cols, 1),
      PartSums{
          op.sums_partial, divide_up(op.from.rows, kTileRows), op.from.cols, op.from.cols, {op.sums}, {op.sums_add}});
}

void to_fp8(const ToFp8& first, const ToFp8& second) {
  const bool alike = first.from.type == second.from.type && first.type == second.type;
  if (!alike || first.sums != nullptr || second.sums != nullptr) {
    to_fp8(first);
    return to_fp8(second);
  }
  expect(fits_fp8(first.from) && fits_fp8(second.from) && first.from.rows > 0 && second.from.rows > 0,
         "a matrix that eight bits do not fit");
  run_passes({{pass_of(first), pass_of(second)}}, first);
}

bool fits_fp8(const Tensor& t) {
  return (t.type == DType::bf16 || t.type == DType::f32) && in_eights(t) && t.cols % kFp8Multiple == 0;
}

}  // namespace brisk::cuda
