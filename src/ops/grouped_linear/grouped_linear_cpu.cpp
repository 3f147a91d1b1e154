#include <algorithm>
#include <vector>

#include "base/runtime.h"
#include "ops/element.h"
#include "ops/grouped_linear/grouped_linear_kernels.h"

namespace brisk::cpu {

namespace {

// Below this many elements of y a second thread costs more than it saves (a hand-over takes some microseconds).
constexpr int64_t kGroupedElementsPerThread = 8192;

bool has_kernel(const GroupedLinearShape& shape) {
  return has_vector_kernels() && shape.inputs.inputs == kGroupOfFour && shape.outputs == kGroupOfFour &&
         shape.groups % kGroupOfFour == 0 && shape.groups * kGroupOfFour <= kMostGroupedColumns;
}

int64_t grain(const Tensor& y) {
  return std::max<int64_t>(1, kGroupedElementsPerThread / std::max<int64_t>(1, y.cols));
}

// [I, P G O]: neighbouring outputs are neighbouring numbers.
const float* transposed(const Tensor& weight) {
  static thread_local std::vector<float> numbers;  // kept, so that a step allocates nothing
  numbers.resize(static_cast<size_t>(weight.rows * weight.cols));
  for (int64_t r = 0; r < weight.rows; ++r) {
    for (int64_t i = 0; i < weight.cols; ++i) {
      numbers[static_cast<size_t>(i * weight.rows + r)] = weight.f32()[r * weight.stride + i];
    }
  }
  return numbers.data();
}

}  // namespace

void grouped_linear_forward(const GroupedLinearForward& op) {
  if (!has_kernel(op.shape)) return ref::grouped_linear_forward(op);
  const auto rows = BRISK_ACTIVE_ISA(grouped_linear_forward_rows);
  const float* weight = transposed(op.weight);
  thread_pool().for_range(op.y.rows, grain(op.y),
                          [&](int64_t begin, int64_t end, int) { rows(op, weight, begin, end); });
}

void grouped_linear_backward(const GroupedLinearBackward& op) {
  if (!has_kernel(op.shape)) return ref::grouped_linear_backward(op);
  if (op.dx) {
    const auto rows = BRISK_ACTIVE_ISA(grouped_linear_dx_rows);
    const float* weight = transposed(op.weight);
    thread_pool().for_range(op.dx.rows, grain(op.dy),
                            [&](int64_t begin, int64_t end, int) { rows(op, weight, begin, end); });
  }
  if (!op.dweight && !op.dbias) return;
  const auto rows = BRISK_ACTIVE_ISA(grouped_linear_dweight_rows);
  const int64_t outputs = op.weight.rows, inputs = op.weight.cols, of_part = outputs * (inputs + 1);
  const int64_t rows_of_part = std::max<int64_t>(1, (op.dy.rows + kGroupedLinearParts - 1) / kGroupedLinearParts);
  const int64_t parts = (op.dy.rows + rows_of_part - 1) / rows_of_part;
  float* sums = op.scratch.f32();
  thread_pool().for_range(parts, std::max<int64_t>(1, grain(op.dy) / rows_of_part),
                          [&](int64_t begin, int64_t end, int) {
                            for (int64_t part = begin; part < end; ++part) {
                              const int64_t first = part * rows_of_part;
                              rows(op, sums + part * of_part, first, std::min(first + rows_of_part, op.dy.rows));
                            }
                          });
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t c = 0; c < of_part; ++c) sums[c] += sums[part * of_part + c];
  }
  if (parts == 0) std::fill(sums, sums + of_part, 0.0f);
  for (int64_t r = 0; r < outputs; ++r) {
    for (int64_t i = 0; i < inputs && op.dweight; ++i) {
      put_element(op.dweight, r, i, sums[i * outputs + r], op.dweight_adds);
    }
    if (op.dbias) put_element(op.dbias, 0, r, sums[inputs * outputs + r], op.dbias_adds);
  }
}

}  // namespace brisk::cpu
