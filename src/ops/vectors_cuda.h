// Several neighbouring elements of a row at once, as floats, for kernels: 16-byte accesses where rows allow them.
//
//   float v[8];
//   load<8>(x, v);           // x: float* or bf16_t*
//   store<8>(y, v);
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace brisk::cuda {

template <int kCount>
__device__ __forceinline__ void load(const float* from, float (&to)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 v = *reinterpret_cast<const float4*>(from + i);
      to[i] = v.x, to[i + 1] = v.y, to[i + 2] = v.z, to[i + 3] = v.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = from[i];
  }
}

template <int kCount>
__device__ __forceinline__ void load(const bf16_t* from, float (&to)[kCount]) {
  if constexpr (kCount % 8 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 8) {
      const uint4 v = *reinterpret_cast<const uint4*>(from + i);
      const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        to[i + 2 * w] = __uint_as_float(words[w] << 16);
        to[i + 2 * w + 1] = __uint_as_float(words[w] & 0xFFFF0000u);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = to_float(from[i]);
  }
}

// The nearest bf16's bits; one instruction for two on the cards brisk runs on.
__device__ __forceinline__ uint32_t two_bf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

template <int kCount>
__device__ __forceinline__ void store(float* to, const float (&from)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4)
      *reinterpret_cast<float4*>(to + i) = make_float4(from[i], from[i + 1], from[i + 2], from[i + 3]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = from[i];
  }
}

template <int kCount>
__device__ __forceinline__ void store(bf16_t* to, const float (&from)[kCount]) {
  if constexpr (kCount % 8 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 8) {
      *reinterpret_cast<uint4*>(to + i) =
          make_uint4(two_bf16(from[i], from[i + 1]), two_bf16(from[i + 2], from[i + 3]),
                     two_bf16(from[i + 4], from[i + 5]), two_bf16(from[i + 6], from[i + 7]));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i].bits = static_cast<uint16_t>(two_bf16(from[i], 0.0f));
  }
}

// Whether every row of a matrix can be taken in eights. No matrix at all can.
inline bool in_eights(const Tensor& t) {
  return t.data == nullptr || (t.cols % 8 == 0 && t.stride % 8 == 0 && reinterpret_cast<uintptr_t>(t.data) % 16 == 0);
}

}  // namespace brisk::cuda
