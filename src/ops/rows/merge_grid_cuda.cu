// A thread has one number.
#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/rows/merge_grid.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void merge_grid_forward_kernel(MergeGridForward op) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.y.rows * op.y.cols) return;
  const int64_t row = at / op.y.cols, col = at % op.y.cols, width = op.x.cols;
  Floats<1> value = {};
  if (row < op.rows.starts[op.rows.sequences]) {
    const int64_t from = op.grid.source(row, static_cast<int32_t>(col / width));
    value = load_any<1>(op.x, from * op.x.stride + col % width);
  }
  store_any(op.y, row * op.y.stride + col, value);
}

__global__ void merge_grid_backward_kernel(MergeGridBackward op) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.dx.rows * op.dx.cols) return;
  const int64_t row = at / op.dx.cols, col = at % op.dx.cols, to = row * op.dx.stride + col;
  Floats<1> value = {};
  if (row < op.rows.starts[op.rows.sequences]) {
    int32_t part = 0;
    const int64_t from = op.grid.target(row, part);
    value = load_any<1>(op.dy, from * op.dy.stride + part * op.dx.cols + col);
  }
  if (op.dx_adds) value.v[0] += load_any<1>(op.dx, to).v[0];
  store_any(op.dx, to, value);
}

}  // namespace

void merge_grid_forward(const MergeGridForward& op) {
  launch(merge_grid_forward_kernel, {.blocks = divide_up(op.y.rows * op.y.cols, kThreads), .threads = kThreads}, op);
}

void merge_grid_backward(const MergeGridBackward& op) {
  launch(merge_grid_backward_kernel, {.blocks = divide_up(op.dx.rows * op.dx.cols, kThreads), .threads = kThreads}, op);
}

}  // namespace brisk::cuda
