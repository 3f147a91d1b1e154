#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/threads.h"
#include "ops/cpu/row_blocks.h"
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
  const RowBlocks blocks(op.x.rows);
  const int64_t width = op.x.cols, padded = round_up(width, 16);
  // Two sums a block, kept for the next call.
  static thread_local std::vector<float> kept;
  std::vector<float>& partial = kept;  // this thread's, for the pool's threads too
  const size_t needed = static_cast<size_t>(blocks.count * 2 * padded);
  if (partial.size() < needed) partial.resize(needed);
  std::fill_n(partial.begin(), needed, 0.0f);
  const auto sums = [&](int64_t block, int which) { return partial.data() + (2 * block + which) * padded; };
  thread_pool().for_range(
      blocks.count, divide_up(norm_grain(width), blocks.size), [&](int64_t first, int64_t last, int) {
        for (int64_t block = first; block < last; ++block)
          rows(op, blocks.begin(block), blocks.end(block), sums(block, 0), op.dbias ? sums(block, 1) : nullptr);
      });
  const auto finish = [&](const Tensor& gradient, bool adds, int which) {
    if (!gradient) return;
    float* out = gradient.f32();
    for (int64_t c = 0; c < width; ++c) {
      float total = adds ? out[c] : 0.0f;
      for (int64_t block = 0; block < blocks.count; ++block) total += sums(block, which)[c];
      out[c] = total;
    }
  };
  finish(op.dgain, op.dgain_adds, 0);
  finish(op.dbias, op.dbias_adds, 1);
}

}  // namespace brisk::cpu
