// A thread has one number of the result. The table's gradient is a sum over pairs of places in their order: the same bits every
// time.
#include "base/rounding.h"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/grid_attention/window_bias.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void window_bias_forward_kernel(WindowBiasForward op) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.y.rows * op.y.cols) return;
  const int32_t places = op.windows.places();
  const int64_t head = at / op.y.cols, pair = at % op.y.cols;
  const int64_t row =
      window_bias_row(op.windows, static_cast<int32_t>(pair / places), static_cast<int32_t>(pair % places));
  op.y.f32()[head * op.y.stride + pair] = op.table.f32()[row * op.table.stride + head];
}

__global__ void window_bias_backward_kernel(WindowBiasBackward op) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.dtable.rows * op.dtable.cols) return;
  const int64_t row = at / op.dtable.cols, head = at % op.dtable.cols;
  const int32_t places = op.windows.places();
  const float* dy = op.dy.f32() + head * op.dy.stride;
  float sum = 0;
  for_pairs_of_bias_row(op.windows, static_cast<int32_t>(row),
                        [&](int32_t query, int32_t key) { sum += dy[query * places + key]; });
  float& out = op.dtable.f32()[row * op.dtable.stride + head];
  out = op.dtable_adds ? out + sum : sum;
}

}  // namespace

void window_bias_forward(const WindowBiasForward& op) {
  launch(window_bias_forward_kernel, {.blocks = divide_up(op.y.rows * op.y.cols, kThreads), .threads = kThreads}, op);
}

void window_bias_backward(const WindowBiasBackward& op) {
  launch(window_bias_backward_kernel,
         {.blocks = divide_up(op.dtable.rows * op.dtable.cols, kThreads), .threads = kThreads}, op);
}

}  // namespace brisk::cuda
