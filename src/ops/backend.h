// Runs an op on the program's back end: the plain reference, this CPU's kernels, or the GPU's.
//
//   BRISK_RUN_OP(run, norm_forward, op);      // ref::norm_forward(op), cpu::norm_forward(op) or cuda::norm_forward(op)
#pragma once

#include "base/error.h"

#if BRISK_HAVE_CUDA
#define BRISK_RUN_ON_GPU(function, ...) cuda::function(__VA_ARGS__)
#else
#define BRISK_RUN_ON_GPU(function, ...) ::brisk::without_cuda(__VA_ARGS__)

namespace brisk {
template <typename... Arguments>
[[noreturn]] void without_cuda(const Arguments&...) {
  throw InternalError("an op for a GPU in a brisk that was built without CUDA");
}
}  // namespace brisk
#endif

#define BRISK_RUN_OP(run, function, ...)                                  \
  do {                                                                    \
    switch ((run).backend()) {                                            \
      case Backend::reference: ref::function(__VA_ARGS__); break;         \
      case Backend::cpu: cpu::function(__VA_ARGS__); break;               \
      case Backend::cuda: BRISK_RUN_ON_GPU(function, __VA_ARGS__); break; \
    }                                                                     \
  } while (false)
