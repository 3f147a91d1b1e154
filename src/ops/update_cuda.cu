#include "ops/update.h"

#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda_elements.cuh"
#include "ops/cuda_launch.cuh"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kPerBlock = 2048;  // parameters: eight a thread

struct AdamWRates {
  float rate, beta1, beta2, epsilon, correction1, correction2, gradient_scale;
};

template <int kCount>
__device__ void adamw_elements(const AdamWRun& run, const AdamWRates& rates, int64_t at) {
  const Floats<kCount> gradient = load<kCount>(run.gradient + at);
  Floats<kCount> p = load<kCount>(run.parameters + at), m = load<kCount>(run.m + at), v = load<kCount>(run.v + at);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float g = rates.gradient_scale * gradient.v[i];
    m.v[i] += (1 - rates.beta1) * (g - m.v[i]);
    v.v[i] += (1 - rates.beta2) * (g * g - v.v[i]);
    const float step = (m.v[i] / rates.correction1) / (sqrtf(v.v[i] / rates.correction2) + rates.epsilon);
    p.v[i] -= rates.rate * (run.decay * p.v[i] + step);
  }
  store(run.parameters + at, p);
  store(run.m + at, m);
  store(run.v + at, v);
  if (run.copy != nullptr) store(run.copy + at, p);
}

__device__ bool aligned_for_eights(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

// The part of a run that one block updates.
__device__ void adamw_block(const AdamWRun& run, const AdamWRates& rates, int64_t block) {
  const int64_t begin = block * kPerBlock, end = min(run.count, begin + kPerBlock);
  const bool eights = aligned_for_eights(run.parameters) && aligned_for_eights(run.gradient) &&
                      aligned_for_eights(run.m) && aligned_for_eights(run.v) && aligned_for_eights(run.copy);
  const int64_t at = begin + static_cast<int64_t>(threadIdx.x) * 8;
  if (eights && at + 8 <= end) {
    adamw_elements<8>(run, rates, at);
  } else {
    for (int64_t i = at; i < min(end, at + 8); ++i) adamw_elements<1>(run, rates, i);
  }
}

__global__ void adamw_kernel(AdamWRun run, AdamWRates rates) { adamw_block(run, rates, blockIdx.x); }

__global__ void adamw_runs_kernel(AdamWUpdateRuns op) {
  if (op.step->applied == 0) return;
  int64_t low = 0, high = op.count;  // runs[low].first_block <= block < runs[high].first_block
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (op.runs[middle].first_block <= blockIdx.x ? low : high) = middle;
  }
  const AdamWRun run = op.runs[low];
  const AdamWRates rates{op.step->rate,        op.beta1,
                         op.beta2,             op.epsilon,
                         op.step->correction1, op.step->correction2,
                         op.step->gradient_scale};
  adamw_block(run, rates, blockIdx.x - run.first_block);
}

__global__ void convert_to_bf16_kernel(const float* values, bf16_t* out, int64_t count) {
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

__device__ double sum_of_partial(const double* partial, int64_t parts) {
  double sum = 0;
  for (int64_t part = threadIdx.x; part < parts; part += kThreads) sum += partial[part];
  return sum_of_block(sum);
}

__global__ void squared_norm_kernel(const double* partial, int64_t parts, double* out) {
  const double sum = sum_of_partial(partial, parts);
  if (threadIdx.x == 0) *out = sum;
}

__global__ void finish_gradient_kernel(const double* partial, int64_t parts, DeviceStep* step) {
  const double square = sum_of_partial(partial, parts);
  if (threadIdx.x != 0) return;
  const double norm = sqrt(square);
  const double loss = step->weight_sum > 0 ? step->loss_sum / step->weight_sum : step->loss_sum;
  step->squared_norm = square;
  step->gradient_scale = step->max_norm > 0 && norm > step->max_norm ? static_cast<float>(step->max_norm / norm) : 1.0f;
  step->applied = isfinite(square) && isfinite(step->loss_sum) && norm <= step->norm_limit && loss <= step->loss_limit;
}

__global__ void add_loss_sums_kernel(const float* sums, DeviceStep* step) {
  step->loss_sum += sums[0];
  step->correct += sums[1];
  step->targets += sums[2];
  step->weight_sum += sums[3];
}

struct PartialSums {
  double* values;
  int64_t count;
};

PartialSums partial_squares(const float* values, int64_t count) {
  const int64_t blocks = std::clamp<int64_t>(divide_up(count, kThreads * 8), 1, 8 * multiprocessors());
  auto* partial = static_cast<double*>(workspace(blocks * static_cast<int64_t>(sizeof(double))));
  launch(squares_kernel, {.blocks = blocks, .threads = kThreads}, values, count, partial);
  return {partial, blocks};
}

}  // namespace

void adamw_update(const AdamWUpdate& op) {
  const AdamWRun run{op.parameters, op.gradient, op.m, op.v, op.copy, op.count, 0, op.decay};
  const AdamWRates rates{op.rate,        op.beta1,       op.beta2,         op.epsilon,
                         op.correction1, op.correction2, op.gradient_scale};
  launch(adamw_kernel, {.blocks = divide_up(op.count, kPerBlock), .threads = kThreads}, run, rates);
}

int64_t number_adamw_blocks(AdamWRun* runs, int64_t count) {
  int64_t blocks = 0;
  for (int64_t r = 0; r < count; ++r) {
    runs[r].first_block = blocks;
    blocks += divide_up(runs[r].count, kPerBlock);
  }
  return blocks;
}

void adamw_update_runs(const AdamWUpdateRuns& op) {
  launch(adamw_runs_kernel, {.blocks = op.blocks, .threads = kThreads}, op);
}

void convert_to_bf16(const float* values, bf16_t* out, int64_t count) {
  launch(convert_to_bf16_kernel, {.blocks = divide_up(count, kThreads * 8), .threads = kThreads}, values, out, count);
}

void squared_norm(const float* values, int64_t count, double* out) {
  const PartialSums partial = partial_squares(values, count);
  launch(squared_norm_kernel, {.blocks = 1, .threads = kThreads}, partial.values, partial.count, out);
}

void add_loss_sums(const float* sums, DeviceStep* step) {
  launch(add_loss_sums_kernel, {.blocks = 1, .threads = 1}, sums, step);
}

void finish_gradient(const float* gradient, int64_t count, DeviceStep* step) {
  const PartialSums partial = partial_squares(gradient, count);
  launch(finish_gradient_kernel, {.blocks = 1, .threads = kThreads}, partial.values, partial.count, step);
}

}  // namespace brisk::cuda
