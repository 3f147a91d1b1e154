// The kernels of linear_cross_entropy besides gemm, per instruction set: sweeps over a row of logits.
#pragma once

#include "ops/cpu/by_isa.h"
#include "tensor/tensor.h"

namespace brisk {

// A row's logits so far: their largest, the sum of e^(logit - largest), the place of the first largest, their plain
// sum.
struct SoftmaxState {
  float largest = -__builtin_inff();
  float sum = 0;
  int32_t argmax = 0;
  float total = 0;
};

// What the gradient of a row's loss is made of: softmax * scale - everywhere, and less_at_target less at the target.
struct SoftmaxGradient {
  float scale = 0, everywhere = 0, less_at_target = 0;
  int64_t target = 0;
  const float* next = nullptr;  // logits that are wanted after these
};

// Adds logits [count], which are those of columns first, first + 1, ..., to the state.
BRISK_VECTOR_ISAS(void softmax_add(const float* logits, int64_t first, int64_t count, SoftmaxState& state);)
// The state of a whole row of logits [count], which are overwritten by their gradient; with to_bf16 as bf16 in the
// first half of the same memory.
BRISK_VECTOR_ISAS(SoftmaxState softmax_gradient(float* logits, int64_t count, const SoftmaxGradient& gradient,
                                                bool to_bf16);)

}  // namespace brisk
