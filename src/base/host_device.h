// Marks functions in headers that both CPU code and CUDA kernels call.
//
//   BRISK_HOST_DEVICE constexpr float half(float x) { return 0.5f * x; }
#pragma once

#ifdef __CUDACC__
#define BRISK_HOST_DEVICE __host__ __device__
#else
#define BRISK_HOST_DEVICE
#endif
