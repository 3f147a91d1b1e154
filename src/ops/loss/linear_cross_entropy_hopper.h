// The loss of a large vocabulary in bf16 on Hopper: logits that never reach memory. Free of CUDA's headers.
//
//   LossExponentials chunk = {...};
//   if (has_exponentials(x, weight, dx)) loss_exponentials(chunk);
//
// A tile of the product x W^T becomes exponentials e = exp(logit - reference) before it leaves the multiprocessor,
// with the row's target as reference, and the sums of each row are taken on the way. What is left of the gradient,
// (e - [target] sum) scale / sum, is one number of each row, changed in place, and a factor that belongs to the row:
//
//   dx = factors * (exponentials W),  dW = exponentials^T (factors * x)
//
// so that the pass over all logits between the products is gone, and with it 6 % of a step of the large shape. The
// logits are f32 here, not rounded; factors * x is rounded to bf16, and so is exponentials W before its factors.
#pragma once

#include "ops/loss/linear_cross_entropy_elementwise_cuda.h"
#include "tensor/tensor.h"

namespace brisk::cuda {

// Sums, largest and where it is, of at most 64 parts of the vocabulary, and the reference.
constexpr int64_t exponentials_state_bytes(int64_t rows) { return rows * (64 * 12 + 4); }

struct LossExponentials {
  LossRows rows;     // without bias and label smoothing; exponentials are written to its `gradient`, bf16
  Tensor x, weight;  // [rows, width], [vocabulary, width] bf16
  Tensor scaled_x;   // [rows, width] bf16 out
  float* factors;    // [rows] out
  void* states;      // exponentials_state_bytes
};
// Whether this GPU has the way and these operands fit it: x of any type, since it is converted.
bool has_exponentials(const Tensor& x, const Tensor& weight, const Tensor& dx);
void loss_exponentials(const LossExponentials& chunk);

// Each row times its factor, in place.
void scale_rows(const Tensor& rows, const float* factors);

}  // namespace brisk::cuda
