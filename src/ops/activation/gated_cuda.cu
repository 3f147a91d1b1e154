// A thread takes eight columns of a row, or one where rows are no whole eights.
#include "base/rounding.h"
#include "ops/activation/activation_cuda.cuh"
#include "ops/activation/gated.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

// `a` and `b` are the two halves of x (or dx).
struct GatedArguments {
  int64_t rows, width;
  Tensor x_a, x_b, y, dy, dx_a, dx_b;
};

template <typename T, Activation kKind, int kCount>
__global__ void gated_forward_kernel(GatedArguments op) {
  const int64_t per_row = op.width / kCount, at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.rows * per_row) return;
  const int64_t row = at / per_row, column = at % per_row * kCount;
  const Floats<kCount> a = load<kCount>(static_cast<const T*>(op.x_a.data) + row * op.x_a.stride + column);
  const Floats<kCount> b = load<kCount>(static_cast<const T*>(op.x_b.data) + row * op.x_b.stride + column);
  Floats<kCount> y;
  for (int i = 0; i < kCount; ++i) y.v[i] = activated<kKind, sizeof(T) == 2>(a.v[i]) * b.v[i];
  store(static_cast<T*>(op.y.data) + row * op.y.stride + column, y);
}

template <typename T, Activation kKind, int kCount>
__global__ void gated_backward_kernel(GatedArguments op) {
  const int64_t per_row = op.width / kCount, at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.rows * per_row) return;
  const int64_t row = at / per_row, column = at % per_row * kCount;
  const Floats<kCount> a = load<kCount>(static_cast<const T*>(op.x_a.data) + row * op.x_a.stride + column);
  const Floats<kCount> b = load<kCount>(static_cast<const T*>(op.x_b.data) + row * op.x_b.stride + column);
  const Floats<kCount> dy = load<kCount>(static_cast<const T*>(op.dy.data) + row * op.dy.stride + column);
  Floats<kCount> da, db;
  for (int i = 0; i < kCount; ++i) {
    da.v[i] = dy.v[i] * b.v[i] * activation_slope<kKind, sizeof(T) == 2>(a.v[i]);
    db.v[i] = dy.v[i] * activated<kKind, sizeof(T) == 2>(a.v[i]);
  }
  store(static_cast<T*>(op.dx_a.data) + row * op.dx_a.stride + column, da);
  store(static_cast<T*>(op.dx_b.data) + row * op.dx_b.stride + column, db);
}

bool all_in_eights(const GatedArguments& op) {
  return in_eights(op.x_a) && in_eights(op.x_b) && in_eights(op.y) && in_eights(op.dy) && in_eights(op.dx_a) &&
         in_eights(op.dx_b);
}

}  // namespace

void gated_forward(const GatedForward& op) {
  const int64_t width = op.y.cols;
  const GatedArguments arguments{
      .rows = op.y.rows, .width = width, .x_a = op.x.columns(0, width), .x_b = op.x.columns(width, width), .y = op.y};
  expect(op.x.type == op.y.type, "gated takes and gives one type");
  with_any_type(op.x.type, [&](auto type) {
    with_activation(op.activation, [&](auto kind) {
      using T = decltype(type);
      constexpr Activation kKind = decltype(kind)::kind;
      if (all_in_eights(arguments)) {
        launch(gated_forward_kernel<T, kKind, 8>, {.blocks = divide_up(op.y.rows * width / 8, kThreads)}, arguments);
      } else {
        launch(gated_forward_kernel<T, kKind, 1>, {.blocks = divide_up(op.y.rows * width, kThreads)}, arguments);
      }
    });
  });
}

void gated_backward(const GatedBackward& op) {
  const int64_t width = op.dy.cols;
  const GatedArguments arguments{.rows = op.dy.rows,
                                 .width = width,
                                 .x_a = op.x.columns(0, width),
                                 .x_b = op.x.columns(width, width),
                                 .dy = op.dy,
                                 .dx_a = op.dx.columns(0, width),
                                 .dx_b = op.dx.columns(width, width)};
  expect(op.x.type == op.dy.type && op.x.type == op.dx.type, "gated takes and gives one type");
  with_any_type(op.x.type, [&](auto type) {
    with_activation(op.activation, [&](auto kind) {
      using T = decltype(type);
      constexpr Activation kKind = decltype(kind)::kind;
      if (all_in_eights(arguments)) {
        launch(gated_backward_kernel<T, kKind, 8>, {.blocks = divide_up(op.dy.rows * width / 8, kThreads)}, arguments);
      } else {
        launch(gated_backward_kernel<T, kKind, 1>, {.blocks = divide_up(op.dy.rows * width, kThreads)}, arguments);
      }
    });
  });
}

}  // namespace brisk::cuda
