// Types are looked at as a kernel runs (as in elementwise_cuda.cu): memory is what these kernels wait for.
#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/interpolate/interpolate.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void interpolate_forward_kernel(InterpolateForward op, int64_t width) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.y.rows * op.y.cols) return;
  const int64_t row = at / op.y.cols, column = at % op.y.cols;
  const float x = load_any<1>(op.x, row * op.x.stride + column).v[0];
  const float target = load_any<1>(op.target, row * op.target.stride + column).v[0];
  const float share = load_any<1>(op.share, row * op.share.stride + column / width).v[0];
  store_any(op.y, row * op.y.stride + column, Floats<1>{{x + share * (target - x)}});
}

__device__ void put(const Tensor& t, int64_t at, float value, bool adds) {
  if (adds) value += load_any<1>(t, at).v[0];
  store_any(t, at, Floats<1>{{value}});
}

// `lanes` neighbouring lanes share the columns of one group.
__global__ void interpolate_backward_kernel(InterpolateBackward op, int64_t width, int lanes) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / lanes;
  const bool exists = at < op.share.rows * op.share.cols;
  const int64_t row = exists ? at / op.share.cols : 0, group = exists ? at % op.share.cols : 0;
  const float share = exists ? load_any<1>(op.share, row * op.share.stride + group).v[0] : 0.0f;
  float sum = 0;
  for (int64_t c = threadIdx.x % lanes; exists && c < width; c += lanes) {
    const int64_t column = group * width + c;
    const float dy = load_any<1>(op.dy, row * op.dy.stride + column).v[0];
    sum += dy * (load_any<1>(op.target, row * op.target.stride + column).v[0] -
                 load_any<1>(op.x, row * op.x.stride + column).v[0]);
    if (op.dx) put(op.dx, row * op.dx.stride + column, dy * (1.0f - share), op.dx_adds);
    if (op.dtarget) put(op.dtarget, row * op.dtarget.stride + column, dy * share, op.dtarget_adds);
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (!exists || !op.dshare || threadIdx.x % lanes != 0) return;
  put(op.dshare, row * op.dshare.stride + group, sum, op.dshare_adds);
}

}  // namespace

void interpolate_forward(const InterpolateForward& op) {
  expect(op.y.cols % op.share.cols == 0, "groups of equal width");
  launch(interpolate_forward_kernel,
         {.blocks = divide_up(op.y.rows * op.y.cols, int64_t{kThreads}), .threads = kThreads}, op,
         op.y.cols / op.share.cols);
}

void interpolate_backward(const InterpolateBackward& op) {
  const int64_t width = op.dy.cols / op.share.cols;
  const int lanes = lanes_for(width);
  launch(interpolate_backward_kernel,
         {.blocks = divide_up(op.share.rows * op.share.cols * lanes, int64_t{kThreads}), .threads = kThreads}, op,
         width, lanes);
}

}  // namespace brisk::cuda
