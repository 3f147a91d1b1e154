#include <algorithm>

#include "base/runtime.h"
#include "ops/activation/pointwise_kernels.h"

namespace brisk::cpu {

namespace {

// Below this many elements a second thread costs more than it saves (a hand-over takes some microseconds).
constexpr int64_t kPointwiseElementsPerThread = 4096;

int64_t pointwise_grain(int64_t width) {
  return std::max<int64_t>(1, kPointwiseElementsPerThread / std::max<int64_t>(1, width));
}

}  // namespace

void pointwise_forward(const PointwiseForward& op) {
  if (!has_vector_kernels()) return ref::pointwise_forward(op);
  const auto rows = BRISK_ACTIVE_ISA(pointwise_forward_rows);
  thread_pool().for_range(op.y.rows, pointwise_grain(op.y.cols),
                          [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

void pointwise_backward(const PointwiseBackward& op) {
  if (!has_vector_kernels()) return ref::pointwise_backward(op);
  const auto rows = BRISK_ACTIVE_ISA(pointwise_backward_rows);
  thread_pool().for_range(op.dy.rows, pointwise_grain(op.dy.cols),
                          [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

}  // namespace brisk::cpu
