// A thread has one number of the result. The table's gradient is a sum over a head's distances in their order: the same bits
// every time.
#include "base/rounding.h"
#include "ops/attention/relative_bias.h"
#include "ops/cuda/cuda_launch.cuh"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void relative_bias_forward_kernel(RelativeBiasForward op) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.y.rows * op.y.cols) return;
  const int64_t head = at / op.y.cols, column = at % op.y.cols;
  const int64_t bucket = op.buckets.bucket(column - op.y.cols / 2);
  op.y.f32()[head * op.y.stride + column] = op.table.f32()[bucket * op.table.stride + head];
}

__global__ void relative_bias_backward_kernel(RelativeBiasBackward op) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.dtable.rows * op.dtable.cols) return;
  const int64_t bucket = at / op.dtable.cols, head = at % op.dtable.cols;
  float sum = 0;
  for (int64_t column = 0; column < op.dy.cols; ++column) {
    if (op.buckets.bucket(column - op.dy.cols / 2) == bucket) sum += op.dy.f32()[head * op.dy.stride + column];
  }
  float& out = op.dtable.f32()[bucket * op.dtable.stride + head];
  out = op.dtable_adds ? out + sum : sum;
}

}  // namespace

void relative_bias_forward(const RelativeBiasForward& op) {
  launch(relative_bias_forward_kernel, {.blocks = divide_up(op.y.rows * op.y.cols, kThreads), .threads = kThreads}, op);
}

void relative_bias_backward(const RelativeBiasBackward& op) {
  launch(relative_bias_backward_kernel,
         {.blocks = divide_up(op.dtable.rows * op.dtable.cols, kThreads), .threads = kThreads}, op);
}

}  // namespace brisk::cuda
