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

// A [64, 64] f32 accumulator of a warpgroup, as eight of mma_16x8x16's (ops/cuda/cuda_instructions.cuh): warp w has rows 16
// w to 16 w + 15.
using WarpgroupSums = float[8][4];

// The same of [64, 128].
using WideSums = float[16][4];

__device__ inline uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// A matrix of rows of 64 bf16 (128 bytes) in shared memory, aligned to 1024 bytes, whose 16-byte pieces are swizzled:
// piece p of row r lies at p ^ (r % 8). `bytes` is where its first element to be read lies: a row divisible by 8, and
// 32-byte steps in a row.
__device__ inline uint64_t swizzled_matrix(uint32_t address, int bytes) {
  constexpr uint32_t kEightRows = 1024, kUpper = kEightRows >> 4 | 1u << 30;
  return uint64_t{kUpper} << 32 | ((address >> 4 | 1u << 16) + static_cast<uint32_t>(bytes >> 4));
}
__device__ inline uint64_t swizzled_matrix(const void* shared, int bytes) {
  return swizzled_matrix(shared_address(shared), bytes);
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
template <int kBlocks>
__device__ inline void hold(float (&c)[kBlocks][4]) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
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

// The same for 128 rows of b.
__device__ inline void multiply_shared(WideSums& c, uint64_t a, uint64_t b, bool adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
      "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, "
      "%35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, "
      "%57, %58, %59, %60, %61, %62, %63}, %64, %65, adds, 1, 1, 0, 0;\n}\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
        "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
        "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]),
        "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),
        "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]),
        "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]),
        "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]), "+f"(c[12][0]),
        "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]),
        "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]),
        "+f"(c[15][3])
      : "l"(a), "l"(b), "r"(static_cast<int>(adds))
      : "memory");
}

#undef BRISK_SUMS
#undef BRISK_SUM_NAMES

}  // namespace brisk::cuda
