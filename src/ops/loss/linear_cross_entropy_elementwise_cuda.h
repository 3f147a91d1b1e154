// What linear_cross_entropy needs around its products on the GPU. Free of CUDA's headers.
#pragma once

#include "tensor/tensor.h"

namespace brisk::cuda {

// Rows of logits: the loss of each and, with gradient, the gradient of its logits.
struct LossRows {
  const void* logits;  // [rows, vocabulary]
  DType type;
  int64_t rows, stride, vocabulary;
  void* gradient;  // [rows, vocabulary]: the same memory, where the types are the same, or other
  DType gradient_type;
  const float* bias;
  const int32_t* targets;  // of the chunk's rows, as all below
  const float* weights;
  float label_smoothing;
  float scale;
  const float* step_scale;
  float* loss;
  int64_t loss_stride;
  int32_t* argmax;
  int64_t argmax_stride;
};
void loss_rows(const LossRows& rows, bool gradient);

struct LossSums {
  int64_t rows;
  const int32_t* targets;
  const float* weights;
  const float* loss;
  int64_t loss_stride;
  const int32_t* argmax;
  int64_t argmax_stride;
  float* sums;
};
void sum_losses(const LossSums& losses);

}  // namespace brisk::cuda
