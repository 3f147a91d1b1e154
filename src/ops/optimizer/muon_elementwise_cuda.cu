#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_stream.h"
#include "ops/optimizer/muon_elementwise_cuda.h"
#include "ops/optimizer/stochastic_rounding.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ bool applies(const MuonPass& pass) { return pass.step == nullptr || pass.step->applied > 0; }
__device__ __forceinline__ float scale_of(const MuonPass& pass) {
  return pass.step == nullptr ? pass.gradient_scale : pass.step->gradient_scale;
}

// A block takes one of kMuonPartials parts of a matrix (blockIdx.y).
__global__ void momentum_kernel(const MuonGroup group, const MuonPass pass, double* partials) {
  __shared__ double shared[kThreads];
  const MuonMatrix matrix = group.matrices[blockIdx.y];
  const int64_t count = group.rows * group.cols;
  const float scale = scale_of(pass);
  const bool changes = applies(pass);
  double sum = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count && changes;
       i += kMuonPartials * kThreads) {
    const float g = scale * matrix.gradient[i];
    float m = matrix.momentum[i];
    m += (1 - pass.momentum) * (g - m);
    matrix.momentum[i] = m;
    const float x = g + pass.momentum * (m - g);
    sum += static_cast<double>(x) * x;
  }
  shared[threadIdx.x] = sum;
  for (int distance = kThreads / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if (threadIdx.x < distance) shared[threadIdx.x] += shared[threadIdx.x + distance];
  }
  if (threadIdx.x == 0) partials[blockIdx.y * kMuonPartials + blockIdx.x] = shared[0];
}

template <typename T>
__global__ void direction_kernel(const MuonGroup group, const MuonPass pass, const double* partials, T* x) {
  const MuonMatrix matrix = group.matrices[blockIdx.y];
  const int64_t count = group.rows * group.cols;
  const float scale = scale_of(pass);
  double sum = 0;
  for (int i = 0; i < kMuonPartials; ++i) sum += partials[blockIdx.y * kMuonPartials + i];
  const float shorten = sum > 0 ? static_cast<float>(1 / sqrt(sum)) : 0.0f;
  T* own = x + blockIdx.y * count;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const float g = scale * matrix.gradient[i];
    store_one(own + i, (g + pass.momentum * (matrix.momentum[i] - g)) * shorten);
  }
}

template <typename T>
__global__ void apply_kernel(const MuonGroup group, const MuonPass pass, const T* x, float shape) {
  if (!applies(pass)) return;
  const MuonMatrix matrix = group.matrices[blockIdx.y];
  const int64_t count = group.rows * group.cols;
  const float rate = pass.step == nullptr ? pass.rate : pass.step->muon_rate;
  const float keep = 1 - rate * pass.decay, change = rate * shape;
  const uint64_t rounding = pass.step == nullptr ? 0 : rounding_key(pass.step->step_key);
  const T* own = x + blockIdx.y * count;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const float before = matrix.parameters != nullptr ? matrix.parameters[i] : load_one(matrix.copy + i);
    const float p = keep * before - change * load_one(own + i);
    if (matrix.parameters == nullptr) {
      matrix.copy[i] = to_bf16_stochastic(p, rounding_bits(rounding, matrix.begin + i));
      continue;
    }
    matrix.parameters[i] = p;
    if (matrix.copy != nullptr) store_one(matrix.copy + i, p);
    if (matrix.half_copy != nullptr) store_one(matrix.half_copy + i, p);
  }
}

dim3 grid_of(const MuonGroup& group) {
  const int64_t blocks = std::clamp<int64_t>(divide_up(group.rows * group.cols, 4 * kThreads), 1, 512);
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(group.count)};
}

}  // namespace

void muon_directions(const MuonGroup& group, const MuonPass& pass, double* partials, const Tensor& x) {
  momentum_kernel<<<dim3(kMuonPartials, static_cast<unsigned>(group.count)), kThreads, 0, stream()>>>(group, pass,
                                                                                                      partials);
  BRISK_CUDA_LAUNCHED();
  if (x.type == DType::bf16) {
    direction_kernel<<<grid_of(group), kThreads, 0, stream()>>>(group, pass, partials, x.bf16());
  } else {
    direction_kernel<<<grid_of(group), kThreads, 0, stream()>>>(group, pass, partials, x.f32());
  }
  BRISK_CUDA_LAUNCHED();
}

void muon_apply(const MuonGroup& group, const MuonPass& pass, const Tensor& x) {
  const auto shape =
      static_cast<float>(std::sqrt(std::max(1.0, static_cast<double>(group.rows) / static_cast<double>(group.cols))));
  if (x.type == DType::bf16) {
    apply_kernel<<<grid_of(group), kThreads, 0, stream()>>>(group, pass, x.bf16(), shape);
  } else {
    apply_kernel<<<grid_of(group), kThreads, 0, stream()>>>(group, pass, x.f32(), shape);
  }
  BRISK_CUDA_LAUNCHED();
}

}  // namespace brisk::cuda
