#include <algorithm>

#include "base/runtime.h"
#include "ops/activation/gated_kernels.h"

namespace brisk::cpu {

namespace {

// Below this many elements a second thread costs more than it saves (a hand-over takes some microseconds).
constexpr int64_t kGatedElementsPerThread = 4096;

int64_t gated_grain(int64_t width) {
  return std::max<int64_t>(1, kGatedElementsPerThread / std::max<int64_t>(1, width));
}

}  // namespace

void gated_forward(const GatedForward& op) {
  if (!has_vector_kernels()) return ref::gated_forward(op);
  const auto rows = BRISK_ACTIVE_ISA(gated_forward_rows);
  thread_pool().for_range(op.y.rows, gated_grain(op.y.cols),
                          [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

void gated_backward(const GatedBackward& op) {
  if (!has_vector_kernels()) return ref::gated_backward(op);
  const auto rows = BRISK_ACTIVE_ISA(gated_backward_rows);
  thread_pool().for_range(op.dy.rows, gated_grain(op.dy.cols),
                          [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

}  // namespace brisk::cpu
