#include <algorithm>
#include <cstring>

#include "base/runtime.h"
#include "base/threads.h"
#include "ops/embedding/embedding_kernels.h"

namespace brisk::cpu {

namespace {

// Below this many elements a second thread costs more than it saves (a hand-over takes some microseconds).
constexpr int64_t kEmbeddingElementsPerThread = 8192;
// Narrower column slices than four cache lines would have threads fetch the same memory.
constexpr int64_t kNarrowestSlice = 64;

void fill_zero(const Tensor& t, int thread, int threads) {
  const auto [begin, end] = ThreadPool::share(t.rows, 1, thread, threads);
  if (t.stride == t.cols) {
    if (end > begin)
      std::memset(t.f32() + begin * t.stride, 0, static_cast<size_t>((end - begin) * t.cols) * sizeof(float));
    return;
  }
  for (int64_t row = begin; row < end; ++row) {
    std::memset(t.f32() + row * t.stride, 0, static_cast<size_t>(t.cols) * sizeof(float));
  }
}

// Thread t of `threads`: first as many column slices as are wide enough, then groups of rows within a slice.
EmbeddingShare share_of(int thread, int threads, int64_t width) {
  const int slices = static_cast<int>(std::clamp<int64_t>(width / kNarrowestSlice, 1, threads));
  const int groups = threads / slices;
  if (thread >= slices * groups) return {};
  const auto [begin, end] = ThreadPool::share(width, 16, thread % slices, slices);
  return {begin, end - begin, groups, thread / slices};
}

}  // namespace

void embedding_forward(const EmbeddingForward& op) {
  if (!has_vector_kernels()) return ref::embedding_forward(op);
  const auto rows = BRISK_ACTIVE_ISA(embedding_forward_rows);
  const int64_t grain = std::max<int64_t>(1, kEmbeddingElementsPerThread / std::max<int64_t>(1, op.y.cols));
  thread_pool().for_range(op.rows.rows, grain, [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

void embedding_backward(const EmbeddingBackward& op) {
  if (!has_vector_kernels()) return ref::embedding_backward(op);
  const auto add_share = BRISK_ACTIVE_ISA(embedding_backward_share);
  ThreadPool& pool = thread_pool();
  pool.run([&](int thread) {
    const bool zero_table = op.dtable && !op.dtable_adds, zero_positions = op.dpositions && !op.dpositions_adds;
    const bool zero_types = op.dtypes && !op.dtypes_adds;
    if (zero_table) fill_zero(op.dtable, thread, pool.size());
    if (zero_positions) fill_zero(op.dpositions, thread, pool.size());
    if (zero_types) fill_zero(op.dtypes, thread, pool.size());
    if (zero_table || zero_positions || zero_types) pool.barrier();
    const EmbeddingShare share = share_of(thread, pool.size(), op.dy.cols);
    if (share.count > 0) add_share(op, share);
  });
}

}  // namespace brisk::cpu
