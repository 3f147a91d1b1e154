#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/optimizer/parts.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

// Neighbouring threads read neighbouring elements of each part, so that memory is what limits it.
template <typename Number>
__global__ void sum_parts_kernel(const Number* values, int64_t parts, int64_t count, Number* sum) {
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    CountedSum<Number> total;
    for (int64_t part = 0; part < parts; ++part) total.add(values[part * count + i]);
    sum[i] = total.total();
  }
}

__global__ void add_floats_kernel(const float* values, float* sum, int64_t count) {
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    sum[i] = values[i] + sum[i];
  }
}

Launch shape_for(int64_t count) {
  return {.blocks = std::min<int64_t>(divide_up(count, kThreads), int64_t{16} * multiprocessors()),
          .threads = kThreads};
}

}  // namespace

void sum_parts(const float* values, int64_t parts, int64_t count, float* sum) {
  launch(sum_parts_kernel<float>, shape_for(count), values, parts, count, sum);
}

void sum_parts(const double* values, int64_t parts, int64_t count, double* sum) {
  launch(sum_parts_kernel<double>, shape_for(count), values, parts, count, sum);
}

void add_floats(const float* values, float* sum, int64_t count) {
  launch(add_floats_kernel, shape_for(count), values, sum, count);
}

void copy_bytes(const void* from, void* to, int64_t bytes) {
  if (bytes > 0) {
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream()),
          "copying on the GPU");
  }
}

void clear_bytes(void* data, int64_t bytes) {
  if (bytes > 0) check(cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), stream()), "clearing memory on the GPU");
}

}  // namespace brisk::cuda
