// A thread has one number of the result.
#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/rows/mean_rows.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void mean_rows_forward_kernel(MeanRowsForward op) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.y.rows * op.y.cols) return;
  const int64_t s = at / op.y.cols, c = at % op.y.cols;
  float sum = 0;
  int64_t count = 0;
  if (s < op.rows.sequences) {
    for (int64_t r = op.rows.starts[s] + op.first; r < op.rows.starts[s + 1]; ++r, ++count) {
      sum += load_any<1>(op.x, r * op.x.stride + c).v[0];
    }
  }
  store_any(op.y, s * op.y.stride + c, Floats<1>{{count > 0 ? sum / static_cast<float>(count) : 0.0f}});
}

__global__ void mean_rows_backward_kernel(MeanRowsBackward op) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.dx.rows * op.dx.cols) return;
  const int64_t row = at / op.dx.cols, c = at % op.dx.cols, to = row * op.dx.stride + c;
  // The sequence that the row is of: the last one that begins at or before it.
  int64_t low = 0, high = op.rows.sequences;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (op.rows.starts[middle] <= row ? low : high) = middle;
  }
  float value = 0;
  if (op.rows.sequences > 0 && low < op.dy.rows) {
    const int64_t begin = op.rows.starts[low] + op.first, end = op.rows.starts[low + 1];
    if (row >= begin && row < end) {
      value = load_any<1>(op.dy, low * op.dy.stride + c).v[0] / static_cast<float>(end - begin);
    }
  }
  if (op.dx_adds) value += load_any<1>(op.dx, to).v[0];
  store_any(op.dx, to, Floats<1>{{value}});
}

}  // namespace

void mean_rows_forward(const MeanRowsForward& op) {
  launch(mean_rows_forward_kernel, {.blocks = divide_up(op.y.rows * op.y.cols, kThreads), .threads = kThreads}, op);
}

void mean_rows_backward(const MeanRowsBackward& op) {
  launch(mean_rows_backward_kernel, {.blocks = divide_up(op.dx.rows * op.dx.cols, kThreads), .threads = kThreads}, op);
}

}  // namespace brisk::cuda
