#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/loss/linear_cross_entropy_elementwise_cuda.h"

namespace brisk::cuda {

namespace {

constexpr int kWarp = 32;
constexpr float kLog2E = 1.44269504f;

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
  const float offset = -kLog2E * state.largest;
#pragma unroll
  for (int i = 0; i < kCount; ++i) state.sum += exp2_fast(fmaf(logits.v[i], kLog2E, offset));
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

// What a row of logits costs, and how its logits become their gradients.
struct RowLoss {
  float log_sum_exp;
  int32_t target;
  float scale, everywhere, less_at_target;

  // Writes the row's numbers, by one thread; `target_logit` is of use where there is a target.
  __device__ RowLoss(const LossRows& a, int64_t row, const RowState& state, int32_t target, float target_logit)
      : log_sum_exp(state.largest + logf(state.sum)), target(target) {
    const float weight = target < 0 ? 0.0f : a.weights != nullptr ? a.weights[row] : 1.0f;
    scale = (a.step_scale != nullptr ? *a.step_scale : a.scale) * weight;
    everywhere = scale * a.label_smoothing / static_cast<float>(a.vocabulary);
    less_at_target = scale * (1 - a.label_smoothing);
    if (threadIdx.x != 0) return;
    float loss = 0;
    if (target >= 0) {
      const float plain = log_sum_exp - target_logit;
      const float mean = state.total / static_cast<float>(a.vocabulary);
      loss = (1 - a.label_smoothing) * plain + a.label_smoothing * (log_sum_exp - mean);
    }
    a.loss[row * a.loss_stride] = loss;
    a.argmax[row * a.argmax_stride] = state.argmax;
  }

  template <int kCount>
  __device__ __forceinline__ void to_gradient(Floats<kCount>& v, int64_t col) const {
    if (target < 0) {
      v = {};
      return;
    }
    const float offset = -kLog2E * log_sum_exp;
#pragma unroll
    for (int i = 0; i < kCount; ++i) v.v[i] = fmaf(exp2_fast(fmaf(v.v[i], kLog2E, offset)), scale, -everywhere);
    const auto at_target = static_cast<uint32_t>(target - static_cast<int32_t>(col));
    if (at_target >= kCount) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (at_target == i) v.v[i] -= less_at_target;
    }
  }
};

// A row whose logits become their gradients in place, and that is read once: it waits in shared memory. Several blocks
// share a multiprocessor, so that one loads and stores while another computes.
template <typename T, bool kBias>
__global__ void row_in_shared_kernel(const LossRows a) {
  constexpr int kVector = 8;
  T* const kept = reinterpret_cast<T*>(dynamic_shared());
  const int64_t row = blockIdx.x;
  T* const logits = static_cast<T*>(a.gradient) + row * a.stride;
  const int vocabulary = static_cast<int>(a.vocabulary), vectors = (vocabulary + kVector - 1) / kVector;
  for (int v = threadIdx.x; v < vectors; v += blockDim.x) copy_async(kept + v * kVector, logits + v * kVector, true);
  commit_copies();
  const int32_t target = a.targets[row];
  wait_for_copies<0>();
  __syncthreads();
  const auto read = [&](int col) {
    Floats<kVector> v = load<kVector>(kept + col);
    if constexpr (kBias) {
#pragma unroll
      for (int i = 0; i < kVector; ++i) v.v[i] += col + i < vocabulary ? a.bias[col + i] : 0.0f;
    }
    return v;
  };
  RowState state;
  const int whole = vocabulary / kVector;
  for (int v = threadIdx.x; v < whole; v += blockDim.x) add_logits<kVector>(read(v * kVector), v * kVector, state);
  const int last = whole * kVector + threadIdx.x;
  if (last < vocabulary) {
    Floats<1> v = load<1>(kept + last);
    if constexpr (kBias) v.v[0] += a.bias[last];
    add_logits<1>(v, last, state);
  }
  float target_logit = 0;
  if (target >= 0) target_logit = load_one(kept + target) + (kBias ? a.bias[target] : 0.0f);
  state = reduce_block(state);
  const RowLoss loss(a, row, state, target, target_logit);
  // The last vector may reach beyond the vocabulary, into what pads the row.
  for (int v = threadIdx.x; v < vectors; v += blockDim.x) {
    Floats<kVector> gradient = read(v * kVector);
    loss.to_gradient(gradient, v * kVector);
    store(logits + v * kVector, gradient);
  }
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
  const int32_t target = a.targets[row];
  Floats<1> target_logit = {};
  if (target >= 0) {
    target_logit = load<1>(logits + target);
    with_bias(target_logit, target);
  }
  const RowLoss loss(a, row, state, target, target_logit.v[0]);
  if constexpr (kGradient) {
    __syncthreads();  // the target's logit was read by all
    G* gradient = static_cast<G*>(a.gradient) + row * a.stride;
    const auto to_gradient = [&](auto& v, int64_t col) {
      with_bias(v, col);
      loss.to_gradient(v, col);
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
  __syncthreads();
  if (threadIdx.x < 4) a.sums[threadIdx.x] = static_cast<float>(shared[threadIdx.x][0]);
}

// Whether rows of bf16 logits were taken by way of shared memory.
bool in_shared_memory(const LossRows& rows) {
  const int64_t bytes = round_up(rows.vocabulary, 8) * size_of(DType::bf16);
  const int64_t reduced = kWarp * static_cast<int64_t>(sizeof(RowState));  // what reduce_block needs in addition
  if (rows.gradient != rows.logits || !fits_shared_memory(bytes + reduced)) return false;
  // Two blocks of a multiprocessor where both rows fit, more of short ones.
  const int threads = rows.vocabulary > 65536 ? 1024 : rows.vocabulary > 24576 ? 512 : 256;
  launch(rows.bias != nullptr ? row_in_shared_kernel<bf16_t, true> : row_in_shared_kernel<bf16_t, false>,
         {.blocks = rows.rows, .threads = threads, .shared_bytes = bytes}, rows);
  return true;
}

}  // namespace

void loss_rows(const LossRows& rows, bool gradient) {
  if (gradient && rows.type == DType::bf16 && in_shared_memory(rows)) return;
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
