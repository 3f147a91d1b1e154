// Matrix instructions of Hopper (compute capability 9.0, compiled for sm_90a): four warps that start at a multiple of
// four multiply together, from shared memory, while they go on.
//
//   order_products();                                   // what the warpgroup wrote to registers is seen
//   multiply_shared(c, a_descriptor, b_descriptor, /*adds=*/false);
//   end_products();
//   wait_for_products<0>();
//   hold(c);                                            // and c may be read
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace brisk::cuda {

// A [64, 64] f32 accumulator of a warpgroup, as eight of mma_16x8x16's (ops/cuda_instructions.cuh): warp w has rows 16
// w to 16 w + 15.
using WarpgroupSums = float[8][4];

__device__ inline uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// A matrix of rows of 64 bf16 (128 bytes) in shared memory, aligned to 1024 bytes, whose 16-byte pieces are swizzled:
// piece p of row r lies at p ^ (r % 8). `bytes` is where its first element to be read lies: a row divisible by 8, and
// 32-byte steps in a row.
__device__ inline uint64_t swizzled_matrix(const void* shared, int bytes) {
  constexpr uint32_t kEightRows = 1024, kUpper = kEightRows >> 4 | 1u << 30;
  const uint32_t lower = (shared_address(shared) >> 4 | 1u << 16) + static_cast<uint32_t>(bytes >> 4);
  return uint64_t{kUpper} << 32 | lower;
}

// What was written to shared memory by this thread is seen by the matrix instructions, after a barrier.
__device__ inline void publish_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ inline void order_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most `kPending` groups are under way.
template <int kPending>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// The compiler keeps reads of c behind this.
__device__ inline void hold(WarpgroupSums& c) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(c[n][i])::"memory");
  }
}

#define BRISK_SUMS(c)                                                                                          \
  "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),     \
      "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), \
      "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), \
      "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), \
      "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])
#define BRISK_SUM_NAMES                                                                                             \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31}"

// c (+)= a b^T: 16 columns of 64 rows of a, and of 64 rows of b.
__device__ inline void multiply_shared(WarpgroupSums& c, uint64_t a, uint64_t b, bool adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " BRISK_SUM_NAMES ", %32, %33, adds, 1, 1, 0, 0;\n}\n"
      : BRISK_SUMS(c)
      : "l"(a), "l"(b), "r"(static_cast<int>(adds))
      : "memory");
}
// c += a b with a in registers: b's 16 rows from its first element on, all 64 columns.
__device__ inline void multiply_registers(WarpgroupSums& c, const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " BRISK_SUM_NAMES
      ", {%32, %33, %34, %35}, %36, adds, 1, 1, 1;\n}\n"
      : BRISK_SUMS(c)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)
      : "memory");
}

#undef BRISK_SUMS
#undef BRISK_SUM_NAMES

}  // namespace brisk::cuda
