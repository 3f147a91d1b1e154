// A thread takes eight columns of a row, or one where rows are no whole eights.
#include "base/rounding.h"
#include "ops/activation/activation_cuda.cuh"
#include "ops/activation/pointwise.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

template <typename X, typename Y, Activation kKind, int kCount>
__global__ void pointwise_forward_kernel(PointwiseForward op) {
  const int64_t per_row = op.y.cols / kCount, at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.y.rows * per_row) return;
  const int64_t row = at / per_row, column = at % per_row * kCount;
  Floats<kCount> values = load<kCount>(static_cast<const X*>(op.x.data) + row * op.x.stride + column);
  for (int i = 0; i < kCount; ++i) values.v[i] = op.factor * activated<kKind, sizeof(Y) == 2>(values.v[i]);
  store(static_cast<Y*>(op.y.data) + row * op.y.stride + column, values);
}

template <typename X, typename Dy, typename Dx, Activation kKind, int kCount>
__global__ void pointwise_backward_kernel(PointwiseBackward op) {
  const int64_t per_row = op.dy.cols / kCount, at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.dy.rows * per_row) return;
  const int64_t row = at / per_row, column = at % per_row * kCount;
  Floats<kCount> values = load<kCount>(static_cast<const Dy*>(op.dy.data) + row * op.dy.stride + column);
  if constexpr (kKind != Activation::none) {
    const Floats<kCount> x = load<kCount>(static_cast<const X*>(op.x.data) + row * op.x.stride + column);
    for (int i = 0; i < kCount; ++i) values.v[i] *= activation_slope<kKind, sizeof(Dx) == 2>(x.v[i]);
  }
  for (int i = 0; i < kCount; ++i) values.v[i] *= op.factor;
  store(static_cast<Dx*>(op.dx.data) + row * op.dx.stride + column, values);
}

}  // namespace

void pointwise_forward(const PointwiseForward& op) {
  const bool eights = in_eights(op.x) && in_eights(op.y);
  const int64_t blocks = divide_up(op.y.rows * op.y.cols / (eights ? 8 : 1), kThreads);
  const auto run = [&](auto x, auto y) {
    with_activation(op.activation, [&](auto kind) {
      using X = decltype(x);
      using Y = decltype(y);
      constexpr Activation kKind = decltype(kind)::kind;
      if (eights) {
        launch(pointwise_forward_kernel<X, Y, kKind, 8>, {.blocks = blocks}, op);
      } else {
        launch(pointwise_forward_kernel<X, Y, kKind, 1>, {.blocks = blocks}, op);
      }
    });
  };
  if (op.x.type == DType::f16 && op.y.type == DType::f16) return run(f16_t{}, f16_t{});
  with_type(op.x.type, [&](auto x) { with_type(op.y.type, [&](auto y) { run(x, y); }); });
}

void pointwise_backward(const PointwiseBackward& op) {
  const bool eights = in_eights(op.dy) && in_eights(op.dx) && (op.activation == Activation::none || in_eights(op.x));
  const int64_t blocks = divide_up(op.dy.rows * op.dy.cols / (eights ? 8 : 1), kThreads);
  const DType x_type = op.x ? op.x.type : op.dy.type;
  const auto run = [&](auto x, auto dy, auto dx) {
    with_activation(op.activation, [&](auto kind) {
      using X = decltype(x);
      using Dy = decltype(dy);
      using Dx = decltype(dx);
      constexpr Activation kKind = decltype(kind)::kind;
      if (eights) {
        launch(pointwise_backward_kernel<X, Dy, Dx, kKind, 8>, {.blocks = blocks}, op);
      } else {
        launch(pointwise_backward_kernel<X, Dy, Dx, kKind, 1>, {.blocks = blocks}, op);
      }
    });
  };
  if (x_type == DType::f16 && op.dy.type == DType::f16 && op.dx.type == DType::f16) {
    return run(f16_t{}, f16_t{}, f16_t{});
  }
  with_type(x_type, [&](auto x) {
    with_type(op.dy.type, [&](auto dy) { with_type(op.dx.type, [&](auto dx) { run(x, dy, dx); }); });
  });
}

}  // namespace brisk::cuda
