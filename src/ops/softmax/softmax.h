// softmax: the softmax, or its logarithm, of each row; or of each of G groups of neighbouring columns. Saved for backward:
// y.
//
//   Value weights = softmax(tape, scores, /*groups=*/heads);                       // on the tape
//   cpu::softmax_forward({.x = x, .y = y, .groups = 1, .logarithm = true});        // or directly
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace brisk {

struct SoftmaxForward {
  Tensor x;  // [N, D]
  Tensor y;  // [N, D]
  int64_t groups = 1;
  bool logarithm = false;
};

struct SoftmaxBackward {
  Tensor y;   // [N, D]
  Tensor dy;  // [N, D]
  Tensor dx;  // [N, D]
  int64_t groups = 1;
  bool logarithm = false;
  bool dx_adds = false;
};

namespace ref {
void softmax_forward(const SoftmaxForward& op);
void softmax_backward(const SoftmaxBackward& op);
}  // namespace ref
namespace cpu {
void softmax_forward(const SoftmaxForward& op);
void softmax_backward(const SoftmaxBackward& op);
}  // namespace cpu
namespace cuda {
void softmax_forward(const SoftmaxForward& op);
void softmax_backward(const SoftmaxBackward& op);
}  // namespace cuda

}  // namespace brisk
