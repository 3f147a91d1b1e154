// gated: y = activation(a) * b where x = [a | b] (SwiGLU's middle). Saved for backward: x.
//
//   Value y = gated(tape, x, Activation::silu);                                 // on the tape
//   cpu::gated_forward({.activation = Activation::silu, .x = x, .y = y});       // or directly
#pragma once

#include "ops/activation/activation.h"
#include "tensor/tensor.h"

namespace brisk {

struct GatedForward {
  Activation activation = Activation::silu;
  Tensor x;  // [N, 2 F]
  Tensor y;  // [N, F]
};

struct GatedBackward {
  Activation activation = Activation::silu;
  Tensor x, dy;  // [N, 2 F], [N, F]
  Tensor dx;     // [N, 2 F], overwritten
};

namespace ref {
void gated_forward(const GatedForward& op);
void gated_backward(const GatedBackward& op);
}  // namespace ref
namespace cpu {
void gated_forward(const GatedForward& op);
void gated_backward(const GatedBackward& op);
}  // namespace cpu
namespace cuda {
void gated_forward(const GatedForward& op);
void gated_backward(const GatedBackward& op);
}  // namespace cuda

}  // namespace brisk
