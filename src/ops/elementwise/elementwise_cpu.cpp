#include <algorithm>

#include "base/rounding.h"
#include "base/runtime.h"
#include "ops/elementwise/elementwise_kernels.h"

namespace brisk::cpu {

namespace {

// Below this many elements a second thread costs more than it saves (a hand-over takes some microseconds).
constexpr int64_t kElementsPerThread = 4096;

int64_t elementwise_grain(int64_t width) {
  return std::max<int64_t>(1, kElementsPerThread / std::max<int64_t>(1, width));
}

}  // namespace

void combine(const Combine& op) {
  if (!has_vector_kernels()) return ref::combine(op);
  const auto rows = BRISK_ACTIVE_ISA(combine_rows);
  thread_pool().for_range(op.y.rows, elementwise_grain(op.y.cols),
                          [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

void sum_columns(const SumColumns& op) {
  if (!has_vector_kernels()) return ref::sum_columns(op);
  const auto rows = BRISK_ACTIVE_ISA(sum_columns_rows);
  thread_pool().for_range(op.y.rows, elementwise_grain(op.a.cols),
                          [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

void sum_rows(const SumRows& op) {
  if (!has_vector_kernels()) return ref::sum_rows(op);
  const auto part_sum = BRISK_ACTIVE_ISA(sum_rows_part);
  const int64_t rows = divide_up(op.a.rows, kSumRowsParts), parts = rows == 0 ? 0 : divide_up(op.a.rows, rows);
  thread_pool().for_range(parts, divide_up(elementwise_grain(op.a.cols), std::max<int64_t>(1, rows)),
                          [&](int64_t begin, int64_t end, int) {
                            for (int64_t part = begin; part < end; ++part) {
                              part_sum(op, part * rows, std::min(op.a.rows, (part + 1) * rows),
                                       op.scratch.f32() + part * op.scratch.stride);
                            }
                          });
  thread_pool().for_range(op.y.cols, elementwise_grain(parts), [&](int64_t begin, int64_t end, int) {
    float* y = op.y.f32();
    if (!op.y_adds) std::fill(y + begin, y + end, 0.0f);
    for (int64_t part = 0; part < parts; ++part) {
      const float* sum = op.scratch.f32() + part * op.scratch.stride;
      for (int64_t c = begin; c < end; ++c) y[c] += sum[c];
    }
  });
}

}  // namespace brisk::cpu
