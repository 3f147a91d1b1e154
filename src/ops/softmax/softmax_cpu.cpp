#include <algorithm>

#include "base/runtime.h"
#include "ops/softmax/softmax_kernels.h"

namespace brisk::cpu {

namespace {

// Below this many elements a second thread costs more than it saves (a hand-over takes some microseconds).
constexpr int64_t kSoftmaxElementsPerThread = 2048;

int64_t softmax_grain(int64_t width) {
  return std::max<int64_t>(1, kSoftmaxElementsPerThread / std::max<int64_t>(1, width));
}

}  // namespace

void softmax_forward(const SoftmaxForward& op) {
  if (!has_vector_kernels()) return ref::softmax_forward(op);
  const auto rows = BRISK_ACTIVE_ISA(softmax_forward_rows);
  thread_pool().for_range(op.x.rows, softmax_grain(op.x.cols),
                          [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

void softmax_backward(const SoftmaxBackward& op) {
  if (!has_vector_kernels()) return ref::softmax_backward(op);
  const auto rows = BRISK_ACTIVE_ISA(softmax_backward_rows);
  thread_pool().for_range(op.y.rows, softmax_grain(op.y.cols),
                          [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

}  // namespace brisk::cpu
