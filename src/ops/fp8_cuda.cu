#include <cuda_fp8.h>

#include <algorithm>

#include "ops/cuda_elements.cuh"
#include "ops/cuda_launch.cuh"
#include "ops/fp8_cuda.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kTileRows = 64, kTileCols = 128;
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

// Each block's largest size. Of NaN nothing is seen here: it stays one in eight bits.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    largest_kernel(const T* from, int64_t stride, uint32_t eights_of_row, int64_t eights, float* partial) {
  float largest = 0;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < eights;
       at += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t row = eights < (int64_t{1} << 32) ? static_cast<uint32_t>(at) / eights_of_row : at / eights_of_row;
    const Floats<8> v = load<8>(from + row * stride + (at - row * eights_of_row) * 8);
#pragma unroll
    for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(v.v[i]));
  }
  largest = largest_of_block(largest);
  if (threadIdx.x == 0) partial[blockIdx.x] = largest;
}

template <__nv_fp8_interpretation_t kFormat>
__device__ uint32_t four_bytes(float a, float b, float c, float d) {
  const uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, kFormat);
  const uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, kFormat);
  return low | high << 16;
}

struct Fp8Pass {
  int64_t rows, cols, stride;
  int64_t padded_rows;
  int partials;
  const float* partial;
  float* scale;
  uint8_t* out;
  uint8_t* transposed;
};

// A block has a tile. Rows leave as they come; columns by way of shared memory.
template <typename T, __nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kThreads) to_fp8_kernel(const T* from, const Fp8Pass pass) {
  __shared__ __align__(16) uint8_t tile[kTileRows * kPitch];
  float largest = 0;
  for (int i = threadIdx.x; i < pass.partials; i += kThreads) largest = fmaxf(largest, pass.partial[i]);
  largest = fmaxf(largest_of_block(largest), 1e-30f);
  constexpr float kMost = kFormat == __NV_E4M3 ? 448.0f : 57344.0f;
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *pass.scale = largest / kMost;
  const float factor = kMost / largest;

  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kTileRows;
  const int64_t first_col = static_cast<int64_t>(blockIdx.y) * kTileCols;
#pragma unroll
  for (int chunk = threadIdx.x; chunk < kTileRows * (kTileCols / 8); chunk += kThreads) {
    const int row = chunk / (kTileCols / 8), col = chunk % (kTileCols / 8) * 8;
    uint2 bytes = make_uint2(0, 0);
    if (first_row + row < pass.rows && first_col + col < pass.cols) {
      const Floats<8> v = load<8>(from + (first_row + row) * pass.stride + first_col + col);
      bytes.x = four_bytes<kFormat>(v.v[0] * factor, v.v[1] * factor, v.v[2] * factor, v.v[3] * factor);
      bytes.y = four_bytes<kFormat>(v.v[4] * factor, v.v[5] * factor, v.v[6] * factor, v.v[7] * factor);
      if (pass.out != nullptr) {
        *reinterpret_cast<uint2*>(pass.out + (first_row + row) * pass.cols + first_col + col) = bytes;
      }
    }
    *reinterpret_cast<uint2*>(tile + row * kPitch + col) = bytes;
  }
  if (pass.transposed == nullptr) return;
  __syncthreads();
  // A thread has 16 rows of a column at a time: 16 neighbouring bytes of the transpose.
  for (int part = threadIdx.x; part < kTileCols * (kTileRows / 16); part += kThreads) {
    const int col = part % kTileCols, row = part / kTileCols * 16;
    if (first_col + col >= pass.cols || first_row + row >= pass.padded_rows) continue;
    uint32_t words[4];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      words[word] = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        words[word] |= static_cast<uint32_t>(tile[(row + word * 4 + i) * kPitch + col]) << (8 * i);
      }
    }
    *reinterpret_cast<uint4*>(pass.transposed + (first_col + col) * pass.padded_rows + first_row + row) =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
}

template <typename T>
void run(const ToFp8& op) {
  const T* from = static_cast<const T*>(op.from.data);
  const int64_t eights = op.from.rows * op.from.cols / 8;
  const int64_t blocks = std::clamp<int64_t>(divide_up(eights, kThreads), 1, kMostFp8Partials);
  launch(largest_kernel<T>, {.blocks = blocks, .threads = kThreads}, from, op.from.stride,
         static_cast<uint32_t>(op.from.cols / 8), eights, op.partial);
  const Fp8Pass pass{op.from.rows,
                     op.from.cols,
                     op.from.stride,
                     round_up(op.from.rows, kFp8Multiple),
                     static_cast<int>(blocks),
                     op.partial,
                     op.scale,
                     static_cast<uint8_t*>(op.rows),
                     static_cast<uint8_t*>(op.columns)};
  const Launch shape{.blocks = divide_up(op.from.rows, kTileRows),
                     .blocks_y = divide_up(op.from.cols, kTileCols),
                     .threads = kThreads};
  if (op.type == DType::e4m3) {
    launch(to_fp8_kernel<T, __NV_E4M3>, shape, from, pass);
  } else {
    launch(to_fp8_kernel<T, __NV_E5M2>, shape, from, pass);
  }
}

}  // namespace

void to_fp8(const ToFp8& op) {
  expect(fits_fp8(op.from) && op.from.rows > 0, "a matrix that eight bits do not fit");
  if (op.from.type == DType::bf16) {
    run<bf16_t>(op);
  } else {
    run<float>(op);
  }
}

bool fits_fp8(const Tensor& t) {
  return (t.type == DType::bf16 || t.type == DType::f32) && in_eights(t) && t.cols % kFp8Multiple == 0;
}

}  // namespace brisk::cuda
