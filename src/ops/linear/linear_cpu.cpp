#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/threads.h"
#include "ops/cpu/row_blocks.h"
#include "ops/element.h"
#include "ops/gemm/gemm.h"
#include "ops/linear/linear_kernels.h"

namespace brisk::cpu {

namespace {

Arithmetic arithmetic_of(const Tensor& weight) {
  return weight.type == DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32;
}

// Machines without vector kernels.
void plain_gradient_rows(const LinearBackward& op, int64_t begin, int64_t end, float* column_sums) {
  for (int64_t row = begin; row < end; ++row) {
    const uint32_t key = op.dropout.active() ? op.dropout.row_key(op.rows, row) : 0;
    for (int64_t c = 0; c < op.dy.cols; ++c) {
      float du = element(op.dy, row, c);
      if (op.dropout.active()) du = op.dropout.keeps(key, c) ? du * op.dropout.scale() : 0.0f;
      if (op.activation != Activation::none) du *= activate_slope(op.activation, element(op.before, row, c));
      set_element(op.scratch, row, c, du);
      if (column_sums != nullptr) column_sums[c] += du;
    }
  }
}

void plain_column_sums(const Tensor& x, int64_t begin, int64_t end, float* column_sums) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t c = 0; c < x.cols; ++c) column_sums[c] += element(x, row, c);
  }
}

// One pass over the rows of dy: the gradient before the activation where there is one, and the bias's gradient. Blocks
// of rows are summed apart and added in their order: the same bits for any number of threads.
void gradient_before_activation(const LinearBackward& op, bool scaled) {
  static thread_local std::vector<float> kept;
  std::vector<float>& partial = kept;  // this thread's, for the pool's threads too
  const RowBlocks blocks(op.dy.rows);
  const int64_t outputs = op.dy.cols, padded = round_up(outputs, 16);
  const bool sums = static_cast<bool>(op.dbias);
  if (sums) {
    const size_t needed = static_cast<size_t>(blocks.count * padded);
    if (partial.size() < needed) partial.resize(needed);
    std::fill(partial.begin(), partial.begin() + static_cast<int64_t>(needed), 0.0f);
  }
  const auto sum_rows = [&](int64_t begin, int64_t end, float* own) {
    if (scaled) {
      if (has_vector_kernels()) {
        BRISK_ACTIVE_ISA(linear_gradient_rows)(op, begin, end, own);
      } else {
        plain_gradient_rows(op, begin, end, own);
      }
    } else if (has_vector_kernels()) {
      BRISK_ACTIVE_ISA(linear_column_sums)(op.dy, begin, end, own);
    } else {
      plain_column_sums(op.dy, begin, end, own);
    }
  };
  thread_pool().for_range(blocks.count, 1, [&](int64_t first, int64_t last, int) {
    for (int64_t block = first; block < last; ++block)
      sum_rows(blocks.begin(block), blocks.end(block), sums ? partial.data() + block * padded : nullptr);
  });
  for (int64_t c = 0; c < outputs && sums; ++c) {
    float sum = op.dbias_adds ? op.dbias.f32()[c] : 0.0f;
    for (int64_t block = 0; block < blocks.count; ++block) sum += partial[static_cast<size_t>(block * padded + c)];
    op.dbias.f32()[c] = sum;
  }
}

}  // namespace

void linear_forward(const LinearForward& op) {
  BRISK_CHECK(op.x.cols == op.weight.cols && op.y.cols == op.weight.rows && op.y.rows == op.x.rows,
              "x [{}, {}], weight [{}, {}], y [{}, {}]", op.x.rows, op.x.cols, op.weight.rows, op.weight.cols,
              op.y.rows, op.y.cols);
  GemmEpilogue epilogue;
  epilogue.c = op.y;
  epilogue.bias = op.bias.f32();
  epilogue.activation = op.activation;
  epilogue.before = op.before;
  epilogue.dropout = op.dropout;
  epilogue.rows = op.rows;
  epilogue.residual = op.residual;
  gemm(op.x.rows, op.weight.rows, op.x.cols, operand(op.x), operand(op.weight, true), epilogue,
       arithmetic_of(op.weight));
}

void linear_backward(const LinearBackward& op) {
  const int64_t n = op.x.rows, inputs = op.weight.cols, outputs = op.weight.rows;
  const bool scaled = op.activation != Activation::none || op.dropout.active();
  BRISK_CHECK(op.x.cols == inputs && op.dy.cols == outputs && op.dy.rows == n,
              "x [{}, {}], weight [{}, {}], dy [{}, {}]", n, op.x.cols, outputs, inputs, op.dy.rows, op.dy.cols);
  BRISK_CHECK(!scaled || op.scratch || n == 0, "an activation or dropout needs scratch in linear's backward");
  if (scaled || op.dbias) gradient_before_activation(op, scaled);
  const Tensor du = scaled ? op.scratch : op.dy;
  const Arithmetic arithmetic = arithmetic_of(op.weight);
  if (op.dx) {
    gemm(n, inputs, outputs, operand(du), operand(op.weight), {.c = op.dx, .adds = op.dx_adds}, arithmetic);
  }
  if (op.dweight) {
    gemm(outputs, inputs, n, operand(du, true), operand(op.x), {.c = op.dweight, .adds = op.dweight_adds}, arithmetic);
  }
}

}  // namespace brisk::cpu
