// Launches a kernel on brisk's stream; does nothing if there are no blocks.
//
//   launch(copy_kernel, {.blocks = divide_up(count, 256), .threads = 256}, from, to, count);
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

#include "ops/cuda/cuda_stream.h"

namespace brisk::cuda {

struct Launch {
  int64_t blocks = 0;  // x
  int64_t blocks_y = 1, blocks_z = 1;
  int threads = 256;
  int64_t shared_bytes = 0;  // more than 48 KiB is asked for here
};

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const Launch& shape, Arguments&&... arguments) {
  if (shape.blocks == 0 || shape.blocks_y == 0 || shape.blocks_z == 0) return;
  if (shape.shared_bytes > 48 * 1024) {
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shape.shared_bytes)),
          "shared memory of a kernel");
  }
  const dim3 grid(static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.blocks_y),
                  static_cast<unsigned>(shape.blocks_z));
  kernel<<<grid, static_cast<unsigned>(shape.threads), static_cast<size_t>(shape.shared_bytes), stream()>>>(
      std::forward<Arguments>(arguments)...);
  BRISK_CUDA_LAUNCHED();
}

// Whether a block of this GPU can have so much shared memory: 99 KiB of the smallest, 227 KiB of the largest.
inline bool fits_shared_memory(int64_t bytes) {
  static const int limit = [] {
    int gpu = 0, value = 0;
    check(cudaGetDevice(&gpu), "asking for the current GPU");
    check(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu), "asking for shared memory");
    return value;
  }();
  return bytes <= limit;
}

// Whether the GPU is a Hopper: what is compiled for sm_90a runs there alone.
inline bool is_hopper() {
  static const int capability = [] {
    int gpu = 0, value = 0;
    check(cudaGetDevice(&gpu), "asking for the current GPU");
    check(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, gpu), "asking what the GPU can do");
    return value;
  }();
  return capability == 9;
}

// Throws where an op's arguments break its contract. (base/error.h brings fmt, which nvcc cannot compile.)
inline void expect(bool holds, const char* what) {
  if (!holds) check(cudaErrorInvalidValue, what);
}

// The shared memory asked for at launch.
__device__ inline char* dynamic_shared() {
  extern __shared__ __align__(128) char brisk_shared_memory[];
  return brisk_shared_memory;
}

}  // namespace brisk::cuda
