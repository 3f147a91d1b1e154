#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/rounding.h"
#include "ops/cuda/side_stream_cuda.h"
#include "ops/cuda/workspace_cuda.h"
#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"
#include "ops/gemm/gemm.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_elementwise_cuda.h"
#include "ops/rows/rows_copy.h"

namespace brisk::cuda {

namespace {

void clear(const Tensor& t) {
  if (t.rows == 0 || t.cols == 0) return;
  check(cudaMemset2DAsync(t.data, static_cast<size_t>(t.stride * size_of(t.type)), 0,
                          static_cast<size_t>(t.cols * size_of(t.type)), static_cast<size_t>(t.rows), stream()),
        "clearing a gradient");
}

bool uses_tf32(GemmFormat products, const Tensor& weight) {
  return products == GemmFormat::tf32 && weight.type == DType::f32;
}

Arithmetic arithmetic_of(DType weight, GemmFormat products) {
  if (weight == DType::f32) return products == GemmFormat::tf32 ? Arithmetic::tf32 : Arithmetic::f32;
  return weight == DType::f16 ? Arithmetic::f16 : Arithmetic::bf16;
}

int64_t carved(int64_t bytes) { return round_up(bytes, WorkspaceCarver::kAlignment); }

// The weight's gradient, and with it the bias's where the product can sum the columns of du on the way.
bool weight_gradient(const LinearBackward& op, const Tensor& du, const Tensor& x, float* bias_gradient) {
  GemmProblem product{
      .m = op.dweight.rows, .n = op.dweight.cols, .k = du.rows, .a = operand(du, true), .b = operand(x)};
  product.c = op.dweight;
  if (op.dweight_adds) product.addend = op.dweight;
  product.a_sums = bias_gradient;
  product.tf32 = uses_tf32(op.products, op.weight);
  return multiply(product);
}

}  // namespace

void linear_input_gradient(const LinearBackward& op, GemmProblem product) {
  const auto plain = [&] {
    product.gelu_gradient = false;
    product.before = {};
    BRISK_CHECK(multiply(product), "cuBLASLt cannot multiply [{}, {}] by [{}, {}]", product.m, product.k, product.k,
                product.n);
  };
  if (!op.dx_gelu) return plain();
  BRISK_CHECK(!op.dx_adds, "gelu's slope is for a gradient that nobody else has added to");
  const auto apart = [&] {
    plain();
    linear_gradient_pass(
        {.dy = op.dx, .activation = Activation::gelu_tanh, .before = op.dx_gelu, .rows = op.rows, .du = op.dx});
  };
  if (op.dx_gelu.type != op.dx.type) return apart();
  const auto fused = [&] {
    product.gelu_gradient = true;
    product.before = op.dx_gelu;
    return multiply(product);
  };
  const GemmProblem shape = product;
  run_faster(Fusion::gelu_gradient, shape, fused, apart);
}

void linear_forward(const LinearForward& op) {
  BRISK_CHECK(op.x.cols == op.weight.cols && op.y.cols == op.weight.rows && op.y.rows == op.x.rows,
              "x [{}, {}], weight [{}, {}], y [{}, {}]", op.x.rows, op.x.cols, op.weight.rows, op.weight.cols,
              op.y.rows, op.y.cols);
  if (linear_forward_fp8(op)) return;
  gemm(op.x.rows, op.weight.rows, op.x.cols, operand(op.x), operand(op.weight, true), epilogue_of(op),
       arithmetic_of(op.weight.type, op.products));
}

void linear_backward(const LinearBackward& op) {
  const int64_t n = op.x.rows, inputs = op.weight.cols, outputs = op.weight.rows;
  const DType type = op.weight.type;
  const bool scaled = op.activation != Activation::none || op.dropout.active();
  BRISK_CHECK(op.x.cols == inputs && op.dy.cols == outputs && op.dy.rows == n,
              "x [{}, {}], weight [{}, {}], dy [{}, {}]", n, op.x.cols, outputs, inputs, op.dy.rows, op.dy.cols);
  BRISK_CHECK(!scaled || op.scratch || n == 0, "an activation or dropout needs scratch in linear's backward");
  if (n == 0) {
    if (op.dweight && !op.dweight_adds) clear(op.dweight);
    if (op.dbias && !op.dbias_adds) clear(op.dbias);
    return;
  }
  if (linear_backward_fp8(op)) return;
  const bool own_du = (scaled ? op.scratch.type : op.dy.type) != type;
  const bool own_x = op.dweight && op.x.type != type;
  const int64_t du_bytes = own_du ? carved(n * outputs * size_of(type)) : 0;
  const int64_t x_bytes = own_x ? carved(n * inputs * size_of(type)) : 0;
  const int64_t partial_bytes = op.dbias ? carved(linear_partial_floats(op.dy) * size_of(DType::f32)) : 0;
  WorkspaceCarver carver(du_bytes + x_bytes + partial_bytes);

  Tensor du = op.dy;
  if (scaled) du = op.scratch;
  if (own_du) du = matrix(carver.take(du_bytes), type, n, outputs);
  Tensor x = op.x;
  if (own_x) {
    x = matrix(carver.take(x_bytes), type, n, inputs);
    copy_rows(op.x, x, false);
  }
  float* const partial = static_cast<float*>(carver.take(partial_bytes));
  const bool passes = scaled || own_du;
  const auto run_pass = [&] {
    LinearGradientPass pass;
    pass.dy = op.dy;
    pass.activation = op.activation;
    if (op.activation != Activation::none) pass.before = op.before;
    pass.dropout = op.dropout;
    pass.rows = op.rows;
    if (passes) pass.du = du;
    pass.dbias = op.dbias;
    pass.dbias_adds = op.dbias_adds;
    pass.partial = partial;
    linear_gradient_pass(pass);
  };
  const auto run_weight = [&] {
    BRISK_CHECK(weight_gradient(op, du, x, nullptr), "cuBLASLt cannot multiply [{}, {}]^T by [{}, {}]", n, outputs, n,
                inputs);
  };
  const auto run_weight_and_bias = [&] {
    // Where dy is already what the products read, the weight's product can sum the bias's gradient on the way.
    if (!passes && op.dbias && op.dweight && !op.dbias_adds && !op.dweight_adds) {
      GemmProblem shape{.m = outputs, .n = inputs, .k = n, .a = operand(du, true), .b = operand(x), .c = op.dweight};
      shape.tf32 = uses_tf32(op.products, op.weight);
      const auto fused = [&] { return weight_gradient(op, du, x, op.dbias.f32()); };
      const auto apart = [&] {
        run_pass();
        run_weight();
      };
      return run_faster(Fusion::sums, shape, fused, apart);
    }
    if (!passes && op.dbias) run_pass();
    if (op.dweight) run_weight();
  };
  if (passes) run_pass();
  SideStream side_stream;
  side_stream.queue(run_weight_and_bias);
  if (op.dx) {
    GemmProblem product{.m = n, .n = inputs, .k = outputs, .a = operand(du), .b = operand(op.weight), .c = op.dx};
    product.tf32 = uses_tf32(op.products, op.weight);
    if (op.dx_adds) product.addend = op.dx;
    linear_input_gradient(op, product);
  }
  side_stream.join();
}

}  // namespace brisk::cuda
