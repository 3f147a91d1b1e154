#include <algorithm>
#include <atomic>
#include <vector>

#include "base/rounding.h"
#include "base/runtime.h"
#include "ops/optimizer/update_kernels.h"

namespace brisk::cpu {

namespace {

// Shares are whole pages, and below this many elements a second thread costs more than it saves.
constexpr int64_t kGrain = 4096;

// Calls body(begin, end) for pieces of [0, count) that whichever thread is free takes: memory is not equally fast for
// all.
constexpr int64_t kUpdatePiece = 1 << 16;
template <typename Body>
void in_pieces(int64_t count, const Body& body) {
  if (count <= 2 * kUpdatePiece) {
    thread_pool().for_range(count, kGrain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
    return;
  }
  std::atomic<int64_t> next{0};
  thread_pool().run_parts([&](int) {
    for (int64_t begin; (begin = next.fetch_add(kUpdatePiece, std::memory_order_relaxed)) < count;) {
      body(begin, std::min(begin + kUpdatePiece, count));
    }
  });
}

}  // namespace

void adamw_update(const AdamWUpdate& op) {
  if (!has_vector_kernels()) return ref::adamw_update(op);
  const auto range = BRISK_ACTIVE_ISA(adamw_update_range);
  in_pieces(op.count, [&](int64_t begin, int64_t end) { range(op, begin, end); });
}

double squared_norm(const float* values, int64_t count) {
  if (!has_vector_kernels()) return ref::squared_norm(values, count);
  const auto range = BRISK_ACTIVE_ISA(squared_norm_range);
  // A sum for each piece, added in their order: the same bits for any number of threads.
  static thread_local std::vector<double> kept;
  std::vector<double>& sums = kept;  // this thread's, for the pool's threads too
  sums.assign(static_cast<size_t>(divide_up(count, kUpdatePiece)), 0.0);
  std::atomic<size_t> next{0};
  const auto work = [&](int) {
    for (size_t piece; (piece = next.fetch_add(1, std::memory_order_relaxed)) < sums.size();) {
      const int64_t begin = static_cast<int64_t>(piece) * kUpdatePiece;
      sums[piece] = range(values, begin, std::min(begin + kUpdatePiece, count));
    }
  };
  if (sums.size() == 1) {
    work(0);
  } else {
    thread_pool().run_parts(work);
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void convert_to_bf16(const float* values, bf16_t* out, int64_t count) {
  if (!has_vector_kernels()) return ref::convert_to_bf16(values, out, count);
  const auto range = BRISK_ACTIVE_ISA(convert_to_bf16_range);
  thread_pool().for_range(count, kGrain, [&](int64_t begin, int64_t end, int) { range(values, out, begin, end); });
}

void add_floats(const float* values, float* sum, int64_t count) {
  in_pieces(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum[i] += values[i];
  });
}

void clear_floats(float* values, int64_t count) {
  in_pieces(count, [&](int64_t begin, int64_t end) { std::fill(values + begin, values + end, 0.0f); });
}

}  // namespace brisk::cpu
