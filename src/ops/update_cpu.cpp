#include <algorithm>
#include <vector>

#include "base/threads.h"
#include "ops/update_kernels.h"

namespace brisk::cpu {

namespace {

// Shares are whole pages, and below this many elements a second thread costs more than it saves.
constexpr int64_t kGrain = 4096;

}  // namespace

void adamw_update(const AdamWUpdate& op) {
  if (!has_vector_kernels()) return ref::adamw_update(op);
  const auto range = BRISK_ACTIVE_ISA(adamw_update_range);
  Team::instance().for_range(op.count, kGrain, [&](int64_t begin, int64_t end, int) { range(op, begin, end); });
}

double squared_norm(const float* values, int64_t count) {
  if (!has_vector_kernels()) return ref::squared_norm(values, count);
  const auto range = BRISK_ACTIVE_ISA(squared_norm_range);
  Team& team = Team::instance();
  static std::vector<double> sums;
  sums.assign(static_cast<size_t>(team.size()), 0.0);
  team.for_range(count, kGrain, [&](int64_t begin, int64_t end, int thread) {
    sums[static_cast<size_t>(thread)] = range(values, begin, end);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void convert_to_bf16(const float* values, bf16_t* out, int64_t count) {
  if (!has_vector_kernels()) return ref::convert_to_bf16(values, out, count);
  const auto range = BRISK_ACTIVE_ISA(convert_to_bf16_range);
  Team::instance().for_range(count, kGrain, [&](int64_t begin, int64_t end, int) { range(values, out, begin, end); });
}

}  // namespace brisk::cpu
