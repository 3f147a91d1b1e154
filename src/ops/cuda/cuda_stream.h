// What every CUDA op needs: the stream, the check after a launch, and a workspace.
//
//   scale_kernel<<<blocks, threads, 0, cuda::stream()>>>(x, y, n);
//   BRISK_CUDA_LAUNCHED();
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tensor/cuda_runtime.h"

// Right after a launch: throws where it was refused. (What goes wrong while it runs shows at the next wait.)
#define BRISK_CUDA_LAUNCHED() ::brisk::cuda::check(cudaGetLastError(), __func__)

namespace brisk::cuda {

// Scratch in device memory, aligned to 256 bytes; its contents are lost at the next op. Grows, never shrinks, and only
// outside of a capture.
void* workspace(int64_t bytes);
// Another, for operands that an op makes for products which have a workspace of their own.
void* operand_workspace(int64_t bytes);

bool is_captured();     // whether what is queued now is recorded for a graph, and runs later
int multiprocessors();  // of the GPU

}  // namespace brisk::cuda
