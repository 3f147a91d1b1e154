#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda_elements.cuh"
#include "ops/cuda_stream.h"
#include "ops/linear_cross_entropy_passes_cuda.h"

namespace brisk::cuda {

namespace {

constexpr int kWarp = 32;

struct RowState {
  float largest = -INFINITY;
  float sum = 0;    // of exp(logit - largest)
  float total = 0;  // of the logits, for label smoothing
  int32_t argmax = 0x7FFFFFFF;
};

__device__ __forceinline__ RowState joined(const RowState& a, const RowState& b) {
  RowState both;
  both.largest = fmaxf(a.largest, b.largest);
  // Not "> 0": what is not a number stays one.
  both.sum = (a.sum != 0 ? a.sum * __expf(a.largest - both.largest) : 0.0f) +
             (b.sum != 0 ? b.sum * __expf(b.largest - both.largest) : 0.0f);
  both.total = a.total + b.total;
  both.argmax = a.largest > b.largest || (a.largest == b.largest && a.argmax < b.argmax) ? a.argmax : b.argmax;
  return both;
}

template <int kCount>
__device__ __forceinline__ void add_logits(const Floats<kCount>& logits, int64_t first, RowState& state) {
  float largest = state.largest;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    state.total += logits.v[i];
    if (logits.v[i] > largest) {
      largest = logits.v[i];
      state.argmax = static_cast<int32_t>(first + i);
    }
  }
  if (largest > state.largest) {
    if (state.sum > 0) state.sum *= __expf(state.largest - largest);
    state.largest = largest;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) state.sum += __expf(logits.v[i] - state.largest);
}

__device__ RowState reduce_block(RowState state) {
  __shared__ RowState of_warp[kWarp];
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    RowState other;
    other.largest = __shfl_xor_sync(0xFFFFFFFFu, state.largest, distance);
    other.sum = __shfl_xor_sync(0xFFFFFFFFu, state.sum, distance);
    other.total = __shfl_xor_sync(0xFFFFFFFFu, state.total, distance);
    other.argmax = __shfl_xor_sync(0xFFFFFFFFu, state.argmax, distance);
    state = joined(state, other);
  }
  const int warps = blockDim.x / kWarp;
  if (warps == 1) return state;
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = state;
  __syncthreads();
  RowState all = of_warp[0];
  for (int w = 1; w < warps; ++w) all = joined(all, of_warp[w]);
  return all;
}

// One block a row: its loss, and with kGradient the gradient of its logits, as G.
template <typename T, typename G, bool kGradient>
__global__ void row_kernel(const LossRows a) {
  constexpr int kVector = 8;
  const int64_t row = blockIdx.x;
  const T* logits = static_cast<const T*>(a.logits) + row * a.stride;
  const int64_t whole = a.vocabulary / kVector * kVector;
  const auto with_bias = [&](auto& v, int64_t col) {
    if (a.bias == nullptr) return;
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(v) / sizeof(float)); ++i) v.v[i] += a.bias[col + i];
  };
  RowState state;
  for (int64_t col = threadIdx.x * kVector; col < whole; col += blockDim.x * kVector) {
    Floats<kVector> v = load<kVector>(logits + col);
    with_bias(v, col);
    add_logits<kVector>(v, col, state);
  }
  for (int64_t col = whole + threadIdx.x; col < a.vocabulary; col += blockDim.x) {
    Floats<1> v = load<1>(logits + col);
    with_bias(v, col);
    add_logits<1>(v, col, state);
  }
  state = reduce_block(state);
  const float log_sum_exp = state.largest + logf(state.sum);
  const int32_t target = a.targets[row];
  Floats<1> target_logit = {};
  if (target >= 0) {
    target_logit = load<1>(logits + target);
    with_bias(target_logit, target);
  }
  if (threadIdx.x == 0) {
    float loss = 0;
    if (target >= 0) {
      const float plain = log_sum_exp - target_logit.v[0];
      const float mean = state.total / static_cast<float>(a.vocabulary);
      loss = (1 - a.label_smoothing) * plain + a.label_smoothing * (log_sum_exp - mean);
    }
    a.loss[row * a.loss_stride] = loss;
    if (a.log_sum_exp != nullptr) a.log_sum_exp[row * a.log_sum_exp_stride] = log_sum_exp;
    a.argmax[row * a.argmax_stride] = state.argmax;
  }
  if constexpr (kGradient) {
    __syncthreads();  // the target's logit was read by all
    G* gradient = static_cast<G*>(a.gradient) + row * a.stride;
    const float weight = target < 0 ? 0.0f : a.weights != nullptr ? a.weights[row] : 1.0f;
    const float scale = (a.step_scale != nullptr ? *a.step_scale : a.scale) * weight;
    const float everywhere = scale * a.label_smoothing / static_cast<float>(a.vocabulary);
    const float less_at_target = scale * (1 - a.label_smoothing);
    const auto to_gradient = [&](auto& v, int64_t col) {
      with_bias(v, col);
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof(v) / sizeof(float)); ++i) {
        v.v[i] = target < 0 ? 0.0f : __expf(v.v[i] - log_sum_exp) * scale - everywhere;
        if (col + i == target) v.v[i] -= less_at_target;
      }
    };
    for (int64_t col = threadIdx.x * kVector; col < whole; col += blockDim.x * kVector) {
      Floats<kVector> v = load<kVector>(logits + col);
      to_gradient(v, col);
      store(gradient + col, v);
    }
    for (int64_t col = whole + threadIdx.x; col < a.vocabulary; col += blockDim.x) {
      Floats<1> v = load<1>(logits + col);
      to_gradient(v, col);
      store(gradient + col, v);
    }
  }
}

constexpr int kSumThreads = 1024;

__global__ void sum_kernel(const LossSums a) {
  __shared__ double shared[4][kSumThreads];
  double sums[4] = {};
  for (int64_t row = threadIdx.x; row < a.rows; row += kSumThreads) {
    const int32_t target = a.targets[row];
    if (target < 0) continue;
    const double weight = a.weights != nullptr ? a.weights[row] : 1.0;
    sums[0] += weight * a.loss[row * a.loss_stride];
    sums[1] += a.argmax[row * a.argmax_stride] == target;
    sums[2] += 1;
    sums[3] += weight;
  }
  for (int s = 0; s < 4; ++s) shared[s][threadIdx.x] = sums[s];
  for (int distance = kSumThreads / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if (threadIdx.x < distance) {
      for (int s = 0; s < 4; ++s) shared[s][threadIdx.x] += shared[s][threadIdx.x + distance];
    }
  }
  if (threadIdx.x < 4) a.sums[threadIdx.x] = static_cast<float>(shared[threadIdx.x][0]);
}

}  // namespace

void loss_rows(const LossRows& rows, bool gradient) {
  const auto blocks = static_cast<unsigned>(rows.rows);
  const auto threads = static_cast<unsigned>(std::clamp<int64_t>(round_up(rows.vocabulary / 32, kWarp), kWarp, 1024));
  if (!gradient) {
    row_kernel<float, float, false><<<blocks, threads, 0, stream()>>>(rows);
  } else if (rows.type == DType::bf16) {
    row_kernel<bf16_t, bf16_t, true><<<blocks, threads, 0, stream()>>>(rows);
  } else if (rows.gradient_type == DType::bf16) {
    row_kernel<float, bf16_t, true><<<blocks, threads, 0, stream()>>>(rows);
  } else if (rows.gradient_type == DType::f16) {
    row_kernel<float, f16_t, true><<<blocks, threads, 0, stream()>>>(rows);
  } else {
    row_kernel<float, float, true><<<blocks, threads, 0, stream()>>>(rows);
  }
  BRISK_CUDA_LAUNCHED();
}

void sum_losses(const LossSums& losses) {
  sum_kernel<<<1, kSumThreads, 0, stream()>>>(losses);
  BRISK_CUDA_LAUNCHED();
}

}  // namespace brisk::cuda
