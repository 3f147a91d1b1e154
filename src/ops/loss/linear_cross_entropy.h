// linear_cross_entropy: the output product and its loss in one op, over chunks of rows, so that [N, V] never exists.
//
//   LossValues loss = linear_cross_entropy(tape, h, table, {.label_smoothing = 0.1});
//
// logits = x W^T + b; per row the loss -sum_v q_v log softmax(logits)_v, where q is (1 - smoothing) at the target plus
// smoothing / V everywhere. What the step's loss is divided by is known beforehand (`scale` = 1 / that), so the
// gradients written are final: those of scale * (sum of weight * loss over the valid rows). A target of -1 is no
// target: loss 0, gradient 0. Without gradient (dx, dweight and dbias none) nothing of size V is stored.
//
// With soft targets p, the shares that a teacher gives the classes at temperature T, the row's loss is
// (1 - a) times the above + a T^2 KL(p || softmax(logits / T)); T^2 keeps the size of its gradient whatever T is. They
// are for training: without gradient they must be none, since a model is judged by the true targets. [N, V] is stored
// then, so V is a number of classes, not of words.
#pragma once

#include "tensor/tensor.h"

namespace brisk {

struct LinearCrossEntropy {
  Tensor x;                          // [N, D] f32 or bf16
  Tensor weight;                     // [V, D] f32 or bf16: decides the arithmetic, as in linear
  Tensor bias = {};                  // [1, V] f32, or none
  const int32_t* targets = nullptr;  // [N], -1 = none
  const float* weights = nullptr;    // [N] of the rows, or none: all 1
  float label_smoothing = 0;
  const float* soft_targets = nullptr;  // [N, V] shares, or none
  float soft_weight = 0;                // a
  float temperature = 1;                // T
  float scale = 1;
  const float* step_scale = nullptr;  // on a GPU the scale may lie in device memory; or none
  Tensor loss;                        // [N, 1] f32 out: per row (includes label smoothing, not the row's weight)
  Tensor argmax;                      // [N, 1] i32 out
  Tensor sums;     // [1, 4] f32 out: sum of weight * loss, correct rows, valid rows, sum of the valid rows' weights
  Tensor dx;       // [N, D] out, or none; overwritten
  Tensor dweight;  // [V, D] f32 out, or none
  bool dweight_adds = false;
  Tensor dbias;  // [1, V] f32 out, or none
  bool dbias_adds = false;
  Tensor scratch;                         // [1, bytes / 4] as linear_cross_entropy_scratch says
  GemmFormat products = GemmFormat::own;  // on a GPU; of a type it cannot be of, own
};

// Bytes of scratch for a capacity of `rows` rows; the chunk height follows from it, alike on every run.
int64_t linear_cross_entropy_scratch(int64_t rows, int64_t width, int64_t vocabulary, DType weight_type, bool gradient);

namespace ref {
void linear_cross_entropy(const LinearCrossEntropy& op);
}
namespace cpu {
void linear_cross_entropy(const LinearCrossEntropy& op);
}
namespace cuda {
void linear_cross_entropy(const LinearCrossEntropy& op);
int64_t linear_cross_entropy_scratch(int64_t rows, int64_t vocabulary, DType weight_type, bool gradient);
}  // namespace cuda

}  // namespace brisk
