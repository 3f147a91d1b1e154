// pointwise: y = factor * activation(x), for what no other op's epilogue can take along: the activation after a
// low-rank adapter was added, and the adapter's scale. Saved for backward: x, where there is an activation.
//
//   Value y = pointwise(tape, x, Activation::gelu_tanh, 1);                                       // on the tape
//   cpu::pointwise_forward({.activation = Activation::none, .factor = 0.5f, .x = x, .y = y});     // or directly
#pragma once

#include "ops/activation/activation.h"
#include "tensor/tensor.h"

namespace brisk {

struct PointwiseForward {
  Activation activation = Activation::none;
  float factor = 1;
  Tensor x;  // [N, F]
  Tensor y;  // [N, F]
};

struct PointwiseBackward {
  Activation activation = Activation::none;
  float factor = 1;
  Tensor x;   // [N, F], or none without an activation
  Tensor dy;  // [N, F]
  Tensor dx;  // [N, F], overwritten
};

namespace ref {
void pointwise_forward(const PointwiseForward& op);
void pointwise_backward(const PointwiseBackward& op);
}  // namespace ref
namespace cpu {
void pointwise_forward(const PointwiseForward& op);
void pointwise_backward(const PointwiseBackward& op);
}  // namespace cpu
namespace cuda {
void pointwise_forward(const PointwiseForward& op);
void pointwise_backward(const PointwiseBackward& op);
}  // namespace cuda

}  // namespace brisk
