#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/optimizer/stochastic_rounding.h"
#include "ops/optimizer/update.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

struct AdamWRates {
  float rate, beta1, beta2, epsilon, correction1, correction2, gradient_scale;
};

// Of one run.
struct AdamWPlace {
  float* parameters;
  const float* gradient;
  float* m;
  float* v;
  bf16_t* copy;
  f16_t* half_copy;
  float decay;
  int64_t begin;  // in the flat arrays
  uint64_t rounding;
};

template <int kCount>
__device__ void adamw_elements(const AdamWPlace& run, const AdamWRates& rates, int64_t at) {
  const Floats<kCount> gradient = load<kCount>(run.gradient + at);
  Floats<kCount> m = load<kCount>(run.m + at), v = load<kCount>(run.v + at);
  Floats<kCount> p = run.parameters != nullptr ? load<kCount>(run.parameters + at) : load<kCount>(run.copy + at);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float g = rates.gradient_scale * gradient.v[i];
    m.v[i] += (1 - rates.beta1) * (g - m.v[i]);
    v.v[i] += (1 - rates.beta2) * (g * g - v.v[i]);
    const float step = (m.v[i] / rates.correction1) / (sqrtf(v.v[i] / rates.correction2) + rates.epsilon);
    p.v[i] -= rates.rate * (run.decay * p.v[i] + step);
  }
  store(run.m + at, m);
  store(run.v + at, v);
  if (run.parameters == nullptr) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      p.v[i] = to_float(to_bf16_stochastic(p.v[i], rounding_bits(run.rounding, run.begin + at + i)));
    }
    store(run.copy + at, p);
    return;
  }
  store(run.parameters + at, p);
  if (run.copy != nullptr) store(run.copy + at, p);
  if (run.half_copy != nullptr) store(run.half_copy + at, p);
}

__device__ bool aligned_for_eights(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

// A block takes `per_block` elements of the runs laid end to end.
__global__ void __launch_bounds__(kThreads) adamw_kernel(AdamWRuns op, int64_t per_block) {
  if (op.step->applied == 0) return;
  const AdamWRates rates{
      op.step->rate,          op.beta1, op.beta2, op.epsilon, op.step->correction1, op.step->correction2,
      op.step->gradient_scale};
  int64_t at = blockIdx.x * per_block, run_begin = 0, run = 0;
  const int64_t end = min(op.elements, at + per_block);
  while (run < op.run_count && run_begin + op.runs[run].count <= at) run_begin += op.runs[run++].count;
  while (at < end) {
    const AdamWRun place = op.runs[run];
    const int64_t stop = min(end, run_begin + place.count);
    const int64_t master = place.master_begin < 0 ? place.begin : place.master_begin;
    const AdamWPlace here{place.has_master ? op.parameters + master : nullptr,
                          op.gradient + place.begin,
                          op.m + place.begin,
                          op.v + place.second_moment_begin,
                          op.copy == nullptr ? nullptr : op.copy + place.begin,
                          op.half_copy == nullptr ? nullptr : op.half_copy + place.begin,
                          place.decay,
                          place.begin,
                          rounding_key(op.step->step_key)};
    for (int64_t i = at - run_begin + static_cast<int64_t>(threadIdx.x) * 8; i < stop - run_begin; i += kThreads * 8) {
      if (i + 8 <= stop - run_begin) {
        adamw_elements<8>(here, rates, i);
      } else {
        for (int64_t j = i; j < stop - run_begin; ++j) adamw_elements<1>(here, rates, j);
      }
    }
    at = stop;
    run_begin += place.count;
    ++run;
  }
}

template <typename T>
__global__ void convert_kernel(const float* values, T* out, int64_t count) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * 8;
  if (at + 8 <= count && aligned_for_eights(values) && aligned_for_eights(out)) {
    store(out + at, load<8>(values + at));
  } else {
    for (int64_t i = at; i < min(count, at + 8); ++i) store_one(out + i, values[i]);
  }
}

// The sum of a block's values, at thread 0.
__device__ double sum_of_block(double value) {
  __shared__ double sums[kThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  double total = 0;
  if (threadIdx.x == 0) {
    for (int warp = 0; warp < kThreads / 32; ++warp) total += sums[warp];
  }
  return total;
}

// A thread sums eight squares in float, and its eights in double.
__global__ void squares_kernel(const float* values, int64_t count, double* partial) {
  double sum = 0;
  const bool eights = aligned_for_eights(values);
  for (int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * 8; at < count;
       at += static_cast<int64_t>(gridDim.x) * kThreads * 8) {
    float squares = 0;
    if (eights && at + 8 <= count) {
      const Floats<8> v = load<8>(values + at);
      for (int i = 0; i < 8; ++i) squares += v.v[i] * v.v[i];
    } else {
      for (int64_t i = at; i < min(count, at + 8); ++i) squares += values[i] * values[i];
    }
    sum += squares;
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void squared_norm_kernel(const double* partial, int64_t parts, double* out) {
  double sum = 0;
  for (int64_t part = threadIdx.x; part < parts; part += kThreads) sum += partial[part];
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) *out = sum;
}

}  // namespace

void adamw_update(const AdamWRuns& op) {
  // As many blocks as the GPU runs at once; each goes through thousands of elements.
  const int64_t share = divide_up(op.elements, int64_t{8} * multiprocessors());
  const int64_t per_block = round_up(std::max<int64_t>(share, 1), kThreads * 8);
  launch(adamw_kernel, {.blocks = divide_up(op.elements, per_block), .threads = kThreads}, op, per_block);
}

void convert_to_bf16(const float* values, bf16_t* out, int64_t count) {
  launch(convert_kernel<bf16_t>, {.blocks = divide_up(count, kThreads * 8), .threads = kThreads}, values, out, count);
}

void convert_to_f16(const float* values, f16_t* out, int64_t count) {
  launch(convert_kernel<f16_t>, {.blocks = divide_up(count, kThreads * 8), .threads = kThreads}, values, out, count);
}

void squared_norm(const float* values, int64_t count, double* result) {
  const int64_t blocks = std::clamp<int64_t>(divide_up(count, kThreads * 8), 1, int64_t{8} * multiprocessors());
  auto* partial = static_cast<double*>(workspace(blocks * static_cast<int64_t>(sizeof(double))));
  launch(squares_kernel, {.blocks = blocks, .threads = kThreads}, values, count, partial);
  launch(squared_norm_kernel, {.blocks = 1, .threads = kThreads}, partial, blocks, result);
}

}  // namespace brisk::cuda
