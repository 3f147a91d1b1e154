// `lanes` neighbouring lanes share a row, or a group of its columns, and read it twice: the second time from the cache.
#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/softmax/softmax.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

// The part of a row that a thread's lanes share: columns [first, first + width) of `row`, from `begin` on for this lane.
struct Share {
  int64_t row, first, begin;
  bool exists;
};

template <int kCount>
__device__ Share share_of_thread(int64_t rows, int64_t groups, int64_t width, int lanes) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / lanes;
  const bool exists = at < rows * groups;
  return {exists ? at / groups : 0, exists ? at % groups * width : 0,
          static_cast<int64_t>(threadIdx.x % lanes) * kCount, exists};
}

template <int kCount>
__global__ void softmax_forward_kernel(SoftmaxForward op, int64_t width, int lanes) {
  const Share share = share_of_thread<kCount>(op.x.rows, op.groups, width, lanes);
  const int64_t x = share.row * op.x.stride + share.first, y = share.row * op.y.stride + share.first;
  const int64_t end = share.exists ? width : 0, step = static_cast<int64_t>(lanes) * kCount;
  float largest = -INFINITY, sum = 0;  // of exponentials below the largest so far
  for (int64_t c = share.begin; c < end; c += step) {
    const Floats<kCount> values = load_any<kCount>(op.x, x + c);
    float most = largest;
    for (int i = 0; i < kCount; ++i) most = fmaxf(most, values.v[i]);
    if (most == -INFINITY) continue;
    sum *= expf(largest - most);
    for (int i = 0; i < kCount; ++i) sum += expf(values.v[i] - most);
    largest = most;
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const float other_largest = __shfl_xor_sync(~0u, largest, distance);
    const float other_sum = __shfl_xor_sync(~0u, sum, distance);
    const float most = fmaxf(largest, other_largest);
    if (most == -INFINITY) continue;
    sum = sum * expf(largest - most) + other_sum * expf(other_largest - most);
    largest = most;
  }
  const float factor = 1.0f / sum, shift = largest + logf(sum);
  for (int64_t c = share.begin; c < end; c += step) {
    Floats<kCount> values = load_any<kCount>(op.x, x + c);
    for (int i = 0; i < kCount; ++i) {
      values.v[i] = op.logarithm ? values.v[i] - shift : expf(values.v[i] - largest) * factor;
    }
    store_any(op.y, y + c, values);
  }
}

template <int kCount>
__global__ void softmax_backward_kernel(SoftmaxBackward op, int64_t width, int lanes) {
  const Share share = share_of_thread<kCount>(op.y.rows, op.groups, width, lanes);
  const int64_t y = share.row * op.y.stride + share.first, dy = share.row * op.dy.stride + share.first;
  const int64_t dx = share.row * op.dx.stride + share.first;
  const int64_t end = share.exists ? width : 0, step = static_cast<int64_t>(lanes) * kCount;
  float sum = 0;
  for (int64_t c = share.begin; c < end; c += step) {
    const Floats<kCount> slopes = load_any<kCount>(op.dy, dy + c), values = load_any<kCount>(op.y, y + c);
    for (int i = 0; i < kCount; ++i) sum += op.logarithm ? slopes.v[i] : slopes.v[i] * values.v[i];
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  for (int64_t c = share.begin; c < end; c += step) {
    const Floats<kCount> slopes = load_any<kCount>(op.dy, dy + c);
    Floats<kCount> values = load_any<kCount>(op.y, y + c);
    for (int i = 0; i < kCount; ++i) {
      values.v[i] = op.logarithm ? slopes.v[i] - expf(values.v[i]) * sum : values.v[i] * (slopes.v[i] - sum);
    }
    if (op.dx_adds) {
      const Floats<kCount> before = load_any<kCount>(op.dx, dx + c);
      for (int i = 0; i < kCount; ++i) values.v[i] += before.v[i];
    }
    store_any(op.dx, dx + c, values);
  }
}

}  // namespace

void softmax_forward(const SoftmaxForward& op) {
  const int64_t width = op.x.cols / op.groups;
  const bool eights = in_eights(op.x) && in_eights(op.y) && width % 8 == 0;
  const int lanes = lanes_for(width / (eights ? 8 : 1));
  const int64_t blocks = divide_up(op.x.rows * op.groups * lanes, kThreads);
  launch(eights ? softmax_forward_kernel<8> : softmax_forward_kernel<1>, {.blocks = blocks, .threads = kThreads}, op,
         width, lanes);
}

void softmax_backward(const SoftmaxBackward& op) {
  const int64_t width = op.y.cols / op.groups;
  const bool eights = in_eights(op.y) && in_eights(op.dy) && in_eights(op.dx) && width % 8 == 0;
  const int lanes = lanes_for(width / (eights ? 8 : 1));
  const int64_t blocks = divide_up(op.y.rows * op.groups * lanes, kThreads);
  launch(eights ? softmax_backward_kernel<8> : softmax_backward_kernel<1>, {.blocks = blocks, .threads = kThreads}, op,
         width, lanes);
}

}  // namespace brisk::cuda
