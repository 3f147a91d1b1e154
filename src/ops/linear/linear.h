// linear: y = residual + dropout(activation(x W^T + b)).
//
//   Value h = linear(tape, x, weight, {.bias = bias, .activation = Activation::gelu_tanh});   // on the tape
//   cpu::linear_forward({.x = x, .weight = w, .y = y});                                       // or directly
//
// The arithmetic is fp32 when the weight is f32 and bf16 with fp32 accumulation when it is bf16; x, y, dx may each be
// f32 or bf16 (converted on the way). On a GPU the weight may be f16, and f16 takes the place of bf16. Saved for
// backward: x, and `before` where there is an activation.
#pragma once

#include "base/rounding.h"
#include "ops/activation/activation.h"
#include "ops/dropout.h"
#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

struct LinearForward {
  Tensor x;       // [N, I]
  Tensor weight;  // [O, I]
  Tensor bias;    // [1, O] f32, or none
  Activation activation = Activation::none;
  Tensor before;  // [N, O] out: the value before the activation; none where nobody needs it (no gradient)
  Dropout dropout;
  RowSet rows;      // for dropout's draws
  Tensor residual;  // [N, O] or none; may be the same memory as y
  Tensor y;         // [N, O]
  // [1, O] the bias in the weight's type, or none: on a GPU products with a result of 16 bits add it so; without, it
  // is made.
  Tensor bias_copy;
  GemmFormat products = GemmFormat::own;  // on a GPU
  // [1, fp8_operand_bytes] of bytes, with fp8: out, x and the weight as the gradients' products read them; or none.
  Tensor fp8_operands;
};

// Factors, then the weight's columns, then those of x.
inline int64_t fp8_operand_bytes(int64_t rows, int64_t inputs, int64_t outputs) {
  return 256 + round_up(inputs * round_up(outputs, 16), 256) + round_up(inputs * round_up(rows, 16), 256);
}

struct LinearBackward {
  Tensor dy;      // [N, O]; must not be written: it is also the residual's gradient
  Tensor x;       // [N, I]
  Tensor weight;  // [O, I]
  Activation activation = Activation::none;
  Tensor before;  // [N, O]
  Dropout dropout;
  RowSet rows;
  Tensor scratch;        // [N, O]: the gradient before the activation; given exactly when activation or dropout is on
  Tensor dx;             // [N, I] or none
  bool dx_adds = false;  // dx += instead of dx =
  Tensor dx_gelu = {};   // [N, I], on a GPU: dx is multiplied by the slope of gelu_tanh at this; or none
  Tensor dweight;        // [O, I] f32 or none (frozen)
  bool dweight_adds = false;
  Tensor dbias;  // [1, O] f32 or none
  bool dbias_adds = false;
  GemmFormat products = GemmFormat::own;  // on a GPU
  Tensor fp8_operands;                    // as forward left them, or none
};

namespace ref {
void linear_forward(const LinearForward& op);
void linear_backward(const LinearBackward& op);
}  // namespace ref
namespace cpu {
void linear_forward(const LinearForward& op);
void linear_backward(const LinearBackward& op);
}  // namespace cpu
namespace cuda {
void linear_forward(const LinearForward& op);
void linear_backward(const LinearBackward& op);
}  // namespace cuda

}  // namespace brisk
