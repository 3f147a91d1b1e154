#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/threads.h"
#include "ops/norm/norm_kernels.h"

namespace brisk::cpu {

namespace {

// Below this many elements a second thread costs more than it saves (a hand-over takes some microseconds).
constexpr int64_t kNormElementsPerThread = 8192;

int64_t norm_grain(int64_t width) {
  return std::max<int64_t>(4, kNormElementsPerThread / std::max<int64_t>(1, width) / 4 * 4);
}

}  // namespace

void norm_forward(const NormForward& op) {
  if (!has_vector_kernels()) return ref::norm_forward(op);
  const auto rows = BRISK_ACTIVE_ISA(norm_forward_rows);
  thread_pool().for_range(op.x.rows, norm_grain(op.x.cols),
                          [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

void norm_backward(const NormBackward& op) {
  BRISK_CHECK(!op.prepared.du, "a prepared gradient, which is for GPUs");
  if (!has_vector_kernels()) return ref::norm_backward(op);
  const auto rows = BRISK_ACTIVE_ISA(norm_backward_rows);
  ThreadPool& pool = thread_pool();
  const int64_t width = op.x.cols, padded = round_up(width, 16);
  // Two sums a thread, kept for the next call; threads without a share leave zeros.
  static thread_local std::vector<float> kept;
  std::vector<float>& partial = kept;  // this thread's, for the pool's threads too
  const size_t needed = static_cast<size_t>(pool.size() * 2 * padded);
  if (partial.size() < needed) partial.resize(needed);
  std::fill_n(partial.begin(), needed, 0.0f);
  const auto sums = [&](int thread, int which) { return partial.data() + (2 * thread + which) * padded; };
  pool.for_range(op.x.rows, norm_grain(width), [&](int64_t begin, int64_t end, int thread) {
    rows(op, begin, end, sums(thread, 0), op.dbias ? sums(thread, 1) : nullptr);
  });
  const auto finish = [&](const Tensor& gradient, bool adds, int which) {
    if (!gradient) return;
    float* out = gradient.f32();
    for (int64_t c = 0; c < width; ++c) {
      float total = adds ? out[c] : 0.0f;
      for (int thread = 0; thread < pool.size(); ++thread) total += sums(thread, which)[c];
      out[c] = total;
    }
  };
  finish(op.dgain, op.dgain_adds, 0);
  finish(op.dbias, op.dbias_adds, 1);
}

}  // namespace brisk::cpu
