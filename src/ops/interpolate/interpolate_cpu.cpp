#include <algorithm>

#include "base/runtime.h"
#include "ops/interpolate/interpolate_kernels.h"

namespace brisk::cpu {

namespace {

// Below this many elements a second thread costs more than it saves (a hand-over takes some microseconds).
constexpr int64_t kInterpolatedPerThread = 8192;

int64_t grain(int64_t width) { return std::max<int64_t>(1, kInterpolatedPerThread / std::max<int64_t>(1, width)); }

}  // namespace

void interpolate_forward(const InterpolateForward& op) {
  if (!has_vector_kernels()) return ref::interpolate_forward(op);
  const auto rows = BRISK_ACTIVE_ISA(interpolate_forward_rows);
  thread_pool().for_range(op.y.rows, grain(op.y.cols), [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

void interpolate_backward(const InterpolateBackward& op) {
  if (!has_vector_kernels()) return ref::interpolate_backward(op);
  const auto rows = BRISK_ACTIVE_ISA(interpolate_backward_rows);
  thread_pool().for_range(op.dy.rows, grain(op.dy.cols),
                          [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

}  // namespace brisk::cpu
