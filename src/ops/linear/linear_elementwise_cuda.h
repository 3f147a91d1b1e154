// What linear needs around its products on the GPU. Free of CUDA's headers.
#pragma once

#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"
#include "ops/gemm/gemm.h"
#include "ops/linear/linear.h"

namespace brisk::cuda {

// What a linear layer does to its product, whatever that multiplies.
inline GemmEpilogue epilogue_of(const LinearForward& op) {
  GemmEpilogue epilogue;
  epilogue.c = op.y;
  epilogue.bias = op.bias.f32();
  epilogue.bias_copy = op.bias_copy.data;
  epilogue.activation = op.activation;
  epilogue.before = op.before;
  epilogue.dropout = op.dropout;
  epilogue.rows = op.rows;
  epilogue.residual = op.residual;
  return epilogue;
}

// epilogue.c = residual + dropout(activation(u + bias)); `before`, if given, becomes u + bias. u may be `before` or c.
void finish_product(const Tensor& u, const float* bias, const GemmEpilogue& epilogue);

// du = dropout'(activation'(before) dy), where du is wanted, and the sums of its columns, where dbias is.
struct LinearGradientPass {
  Tensor dy;  // [N, O]
  Activation activation = Activation::none;
  Tensor before = {};
  Dropout dropout = {};
  RowSet rows = {};
  Tensor du = {};     // [N, O], or none
  Tensor dbias = {};  // [1, O] f32, or none
  bool dbias_adds = false;
  float* partial = nullptr;  // linear_partial_floats(dy) of them, where dbias is wanted
};
void linear_gradient_pass(const LinearGradientPass& pass);
int64_t linear_partial_floats(const Tensor& dy);

// dx by `product`, which multiplies the gradient of what linear's product was by the weight, and with it gelu's slope
// where dx_gelu is given.
void linear_input_gradient(const LinearBackward& op, GemmProblem product);

// linear with its products in eight bits (ops/gemm/cuda/fp8_cuda.h), where `products` says so; false, and nothing done, where the
// shapes do not fit.
bool linear_forward_fp8(const LinearForward& op);
bool linear_backward_fp8(const LinearBackward& op);

}  // namespace brisk::cuda
