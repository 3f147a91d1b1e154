// GPU instructions that C++ cannot express (compute capability 8.0 and newer), as inline PTX.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "tensor/dtype.h"

namespace brisk::cuda {

// Two floats as bf16, rounded to nearest even; `low` in the lower half.
__device__ inline uint32_t pack_bf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// The same as f16, and back.
__device__ inline uint32_t pack_f16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
__device__ inline float2 floats_of_f16(uint32_t packed) {
  float2 floats;
  asm("{.reg .f16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
      : "=f"(floats.x), "=f"(floats.y)
      : "r"(packed));
  return floats;
}

// Of a type of 16 bits.
template <typename T>
__device__ inline uint32_t pack_pair(float low, float high) {
  if constexpr (std::is_same_v<T, f16_t>) {
    return pack_f16(low, high);
  } else {
    return pack_bf16(low, high);
  }
}

// 2^x; 2^-inf = 0.
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// c += a b of one warp: a [16, 16] and b [16, 8] bf16 or f16, c [16, 8] f32. With g = lane / 4 and t = lane % 4, a lane
// holds a (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), b (2t, g), (2t + 8, g) and the element after each; c (g,
// 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
template <typename T = bf16_t>
__device__ inline void mma_16x8x16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<T, f16_t>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    return;
  }
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices of 16 bits from shared memory: lane l gives the address of row l % 8 of matrix l / 8, and gets
// of each matrix row l / 4, columns 2 (l % 4) and the next; transposed: column l / 4, rows 2 (l % 4) and the next.
__device__ inline void load_matrices(uint32_t (&to)[4], const void* shared_row) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(shared_row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_matrices_transposed(uint32_t (&to)[4], const void* shared_row) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(shared_row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// 16 bytes on their way into shared memory; zeros where there is nothing to read.
__device__ inline void copy_async(void* shared, const void* global, bool exists) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = exists ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global), "r"(bytes) : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most `kPending` committed groups are on their way.
template <int kPending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace brisk::cuda
