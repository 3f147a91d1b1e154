// Marks what both the CPU's code and a CUDA kernel call: plain arithmetic in a header.
//
//   BRISK_HOST_DEVICE constexpr float half(float x) { return 0.5f * x; }
#pragma once

#ifdef __CUDACC__
#define BRISK_HOST_DEVICE __host__ __device__
#else
#define BRISK_HOST_DEVICE
#endif
