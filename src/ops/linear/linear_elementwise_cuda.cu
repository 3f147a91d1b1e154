#include <algorithm>

#include "base/rounding.h"
#include "ops/activation/activation_cuda.cuh"
#include "ops/cuda/column_sums_cuda.cuh"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_stream.h"
#include "ops/linear/linear_elementwise_cuda.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32, kWarps = kThreads / kWarp;

// One branch for several elements: activations are chosen at run time, or there would be hundreds of kernels.
template <bool kFast, int kVector>
__device__ inline void activate_all(Activation kind, Floats<kVector>& u) {
  const auto each = [&](auto function) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) u.v[i] = function(u.v[i]);
  };
  switch (kind) {
    case Activation::none: return;
    case Activation::gelu_tanh: return each([](float x) { return activated<Activation::gelu_tanh, kFast>(x); });
    case Activation::gelu_erf: return each([](float x) { return activated<Activation::gelu_erf, kFast>(x); });
    case Activation::relu: return each([](float x) { return activated<Activation::relu, kFast>(x); });
    case Activation::silu: return each([](float x) { return activated<Activation::silu, kFast>(x); });
    case Activation::tanh: return each([](float x) { return activated<Activation::tanh, kFast>(x); });
    case Activation::sigmoid: return each([](float x) { return activated<Activation::sigmoid, kFast>(x); });
  }
}

template <bool kFast, int kVector>
__device__ inline void slope_all(Activation kind, Floats<kVector>& u) {
  const auto each = [&](auto function) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) u.v[i] = function(u.v[i]);
  };
  switch (kind) {
    case Activation::none: return each([](float) { return 1.0f; });
    case Activation::gelu_tanh: return each([](float x) { return activation_slope<Activation::gelu_tanh, kFast>(x); });
    case Activation::gelu_erf: return each([](float x) { return activation_slope<Activation::gelu_erf, kFast>(x); });
    case Activation::relu: return each([](float x) { return activation_slope<Activation::relu, kFast>(x); });
    case Activation::silu: return each([](float x) { return activation_slope<Activation::silu, kFast>(x); });
    case Activation::tanh: return each([](float x) { return activation_slope<Activation::tanh, kFast>(x); });
    case Activation::sigmoid: return each([](float x) { return activation_slope<Activation::sigmoid, kFast>(x); });
  }
}

template <int kVector, typename U, typename R, typename C>
struct FinishArguments {
  const U* u;
  int64_t u_stride;
  const float* bias;
  U* before;  // where it is not u itself
  int64_t before_stride;
  const R* residual;
  int64_t residual_stride;
  C* c;
  int64_t c_stride;
  int64_t rows, cols;
  Activation activation;
  Draws draws;
};

template <int kVector, typename U, typename R, typename C>
__global__ void finish_kernel(const FinishArguments<kVector, U, R, C> a) {
  const int64_t col = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kVector;
  if (col >= a.cols) return;
  constexpr bool kFast = sizeof(U) == 2;
  Floats<kVector> bias = {};
  if (a.bias != nullptr) bias = load<kVector>(a.bias + col);
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const uint64_t drawn_key = a.draws.threshold > 0 ? a.draws.drawn_key() : 0;
  Elements<kVector, U> next_u;  // of the next row, on its way
  Elements<kVector, R> next_residual;
  const auto read_row = [&](int64_t of) {
    if (of >= a.rows) return;
    next_u = read<kVector>(a.u + of * a.u_stride + col);
    if (a.residual != nullptr) next_residual = read<kVector>(a.residual + of * a.residual_stride + col);
  };
  read_row(row);
  for (; row < a.rows; row += step) {
    Floats<kVector> v = floats_of(next_u), r = {};
    if (a.residual != nullptr) r = floats_of(next_residual);
    read_row(row + step);
#pragma unroll
    for (int i = 0; i < kVector; ++i) v.v[i] += bias.v[i];
    if (a.before != nullptr) store(a.before + row * a.before_stride + col, v);
    activate_all<kFast>(a.activation, v);
    if (a.draws.threshold > 0) {
      const uint32_t key = a.draws.row_key(row, drawn_key);
#pragma unroll
      for (int i = 0; i < kVector; ++i) v.v[i] *= a.draws.factor(key, col + i);
    }
    if (a.residual != nullptr) {
#pragma unroll
      for (int i = 0; i < kVector; ++i) v.v[i] += r.v[i];
    }
    store(a.c + row * a.c_stride + col, v);
  }
}

template <int kVector, typename U, typename R, typename C>
void finish(const Tensor& u, const float* bias, const GemmEpilogue& e) {
  FinishArguments<kVector, U, R, C> a{};
  a.u = u.as<U>();
  a.u_stride = u.stride;
  a.bias = bias;
  if (e.before.data != nullptr && e.before.data != u.data) {
    a.before = e.before.as<U>();
    a.before_stride = e.before.stride;
  } else if (e.before.data != nullptr && bias != nullptr) {
    a.before = u.as<U>();
    a.before_stride = u.stride;
  }
  a.residual = e.residual.as<R>();
  a.residual_stride = e.residual.stride;
  a.c = e.c.as<C>();
  a.c_stride = e.c.stride;
  a.rows = e.c.rows;
  a.cols = e.c.cols;
  a.activation = e.activation;
  a.draws = draws_of(e.dropout, e.rows);
  const int64_t vectors = divide_up(a.cols, kVector);
  const auto across = static_cast<unsigned>(std::min<int64_t>(kThreads, round_up(vectors, kWarp)));
  const unsigned down = kThreads / across;
  const auto column_blocks = static_cast<unsigned>(divide_up(vectors, across));
  const int64_t most = divide_up(int64_t{16} * multiprocessors(), column_blocks);
  const auto row_blocks = static_cast<unsigned>(std::clamp<int64_t>(divide_up(a.rows, down), 1, most));
  finish_kernel<kVector, U, R, C><<<dim3(row_blocks, column_blocks), dim3(across, down), 0, stream()>>>(a);
  BRISK_CUDA_LAUNCHED();
}

template <int kVector, typename D, typename B, typename U>
struct GradientArguments {
  const D* dy;
  int64_t dy_stride;
  const B* before;  // none: no activation
  int64_t before_stride;
  U* du;  // or none
  int64_t du_stride;
  float* partial;  // [chunks, cols], or none
  int64_t rows, cols, rows_of_chunk;
  Activation activation;
  Draws draws;
};

// A block takes the rows of one chunk and 32 vectors of columns; each of its warps takes every eighth row.
template <int kVector, typename D, typename B, typename U>
__global__ void gradient_kernel(const GradientArguments<kVector, D, B, U> a) {
  __shared__ float shared[kWarps][kWarp * kVector];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t col = (static_cast<int64_t>(blockIdx.x) * kWarp + lane) * kVector;
  const bool inside = col < a.cols;
  constexpr bool kFast = sizeof(B) == 2;
  float sums[kVector] = {};
  const int64_t begin = blockIdx.y * a.rows_of_chunk, end = min(a.rows, begin + a.rows_of_chunk);
  const uint64_t drawn_key = a.draws.threshold > 0 ? a.draws.drawn_key() : 0;
  Elements<kVector, D> next_dy;  // of the next row, on its way
  Elements<kVector, B> next_before;
  const auto read_row = [&](int64_t of) {
    if (of >= end || !inside) return;
    next_dy = read<kVector>(a.dy + of * a.dy_stride + col);
    if (a.before != nullptr) next_before = read<kVector>(a.before + of * a.before_stride + col);
  };
  read_row(begin + warp);
  for (int64_t row = begin + warp; row < end && inside; row += kWarps) {
    Floats<kVector> v = floats_of(next_dy), slope = {};
    if (a.before != nullptr) slope = floats_of(next_before);
    read_row(row + kWarps);
    if (a.draws.threshold > 0) {
      const uint32_t key = a.draws.row_key(row, drawn_key);
#pragma unroll
      for (int i = 0; i < kVector; ++i) v.v[i] *= a.draws.factor(key, col + i);
    }
    if (a.before != nullptr) {
      slope_all<kFast>(a.activation, slope);
#pragma unroll
      for (int i = 0; i < kVector; ++i) v.v[i] *= slope.v[i];
    }
    if (a.du != nullptr) store(a.du + row * a.du_stride + col, v);
#pragma unroll
    for (int i = 0; i < kVector; ++i) sums[i] += v.v[i];
  }
  if (a.partial == nullptr) return;
#pragma unroll
  for (int i = 0; i < kVector; ++i) shared[warp][lane * kVector + i] = sums[i];
  __syncthreads();
  for (int c = threadIdx.x; c < kWarp * kVector; c += kThreads) {
    const int64_t at = static_cast<int64_t>(blockIdx.x) * kWarp * kVector + c;
    if (at >= a.cols) continue;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += shared[w][c];
    a.partial[blockIdx.y * a.cols + at] = sum;
  }
}

// The sums alone: as above, with eight rows on their way to each thread, and all blocks at work at once.
constexpr int kRowsAtOnce = 8;
template <typename D>
__global__ void __launch_bounds__(kThreads, 4)
    column_sums_kernel(const Tensor dy, const int64_t rows_of_chunk, float* partial) {
  __shared__ float shared[kWarps][kWarp * 8];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t col = (static_cast<int64_t>(blockIdx.x) * kWarp + lane) * 8;
  const int64_t begin = blockIdx.y * rows_of_chunk, end = min(dy.rows, begin + rows_of_chunk);
  float sums[8] = {};
  for (int64_t row = begin + warp; row < end && col < dy.cols; row += kWarps * kRowsAtOnce) {
    const D* from = static_cast<const D*>(dy.data) + row * dy.stride + col;
    Elements<8, D> rows[kRowsAtOnce];
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      rows[r] = {};
      if (row + r * kWarps < end) rows[r] = read<8>(from + r * kWarps * dy.stride);
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const Floats<8> v = floats_of(rows[r]);
#pragma unroll
      for (int i = 0; i < 8; ++i) sums[i] += v.v[i];
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) shared[warp][lane * 8 + i] = sums[i];
  __syncthreads();
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kWarp * 8 + threadIdx.x;
  if (at >= dy.cols) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += shared[w][threadIdx.x];
  partial[blockIdx.y * dy.cols + at] = sum;
}

constexpr int64_t kBlocks = 1024;    // wanted of gradient_kernel: several for each multiprocessor of the largest GPUs
constexpr int64_t kSumBlocks = 512;  // of column_sums_kernel: four

struct Chunks {
  int64_t rows = 0, count = 0;
};
Chunks chunks_of(const Tensor& dy, int vector, int64_t blocks = kBlocks) {
  const int64_t column_blocks = divide_up(dy.cols, int64_t{kWarp} * vector);
  const int64_t wanted = std::max<int64_t>(1, blocks / column_blocks);
  const int64_t rows = round_up(std::max<int64_t>(1, divide_up(dy.rows, wanted)), kWarps);
  return {rows, std::max<int64_t>(1, divide_up(dy.rows, rows))};
}

template <int kVector, typename D, typename B, typename U>
void run_gradient(const LinearGradientPass& pass) {
  const Chunks chunks = chunks_of(pass.dy, kVector);
  GradientArguments<kVector, D, B, U> a{};
  a.dy = pass.dy.as<D>();
  a.dy_stride = pass.dy.stride;
  a.before = pass.before.as<B>();
  a.before_stride = pass.before.stride;
  a.du = pass.du.as<U>();
  a.du_stride = pass.du.stride;
  a.partial = pass.dbias ? pass.partial : nullptr;
  a.rows = pass.dy.rows;
  a.cols = pass.dy.cols;
  a.rows_of_chunk = chunks.rows;
  a.activation = pass.activation;
  a.draws = draws_of(pass.dropout, pass.rows);
  const dim3 grid(static_cast<unsigned>(divide_up(a.cols, int64_t{kWarp} * kVector)),
                  static_cast<unsigned>(chunks.count));
  gradient_kernel<kVector, D, B, U><<<grid, kThreads, 0, stream()>>>(a);
  BRISK_CUDA_LAUNCHED();
  if (!pass.dbias) return;
  launch(add_parts_kernel, add_parts_shape(a.cols, 1),
         PartSums{pass.partial, chunks.count, a.cols, a.cols, {pass.dbias.f32()}, {pass.dbias_adds}});
}

template <typename D>
void run_column_sums(const LinearGradientPass& pass) {
  const Tensor& dy = pass.dy;
  const Chunks chunks = chunks_of(dy, 8, kSumBlocks);
  launch(column_sums_kernel<D>,
         {.blocks = divide_up(dy.cols, int64_t{kWarp} * 8), .blocks_y = chunks.count, .threads = kThreads}, dy,
         chunks.rows, pass.partial);
  launch(add_parts_kernel, add_parts_shape(dy.cols, 1),
         PartSums{pass.partial, chunks.count, dy.cols, dy.cols, {pass.dbias.f32()}, {pass.dbias_adds}});
}

}  // namespace

void finish_product(const Tensor& u, const float* bias, const GemmEpilogue& e) {
  if (e.c.rows == 0 || e.c.cols == 0) return;
  const bool eights = in_eights(u) && in_eights(e.before) && in_eights(e.residual) && in_eights(e.c) &&
                      reinterpret_cast<uintptr_t>(bias) % 16 == 0;
  const auto run = [&](auto u_type, auto residual_type, auto c_type) {
    using U = decltype(u_type);
    using R = decltype(residual_type);
    using C = decltype(c_type);
    if (eights) {
      finish<8, U, R, C>(u, bias, e);
    } else {
      finish<1, U, R, C>(u, bias, e);
    }
  };
  const DType residual = e.residual ? e.residual.type : e.c.type;
  if (u.type == DType::f16 && residual == e.c.type) {
    return e.c.type == DType::f16 ? run(f16_t{}, f16_t{}, f16_t{}) : run(f16_t{}, float{}, float{});
  }
  with_type(u.type, [&](auto u_type) {
    with_type(e.residual.type, [&](auto residual_type) {
      with_type(e.c.type, [&](auto c_type) { run(u_type, residual_type, c_type); });
    });
  });
}

void linear_gradient_pass(const LinearGradientPass& pass) {
  if (pass.dy.cols == 0) return;
  const bool eights = in_eights(pass.dy) && in_eights(pass.before) && in_eights(pass.du);
  if (pass.dbias && eights && !pass.du && !pass.before && !pass.dropout.active()) {
    if (pass.dy.type == DType::bf16) return run_column_sums<bf16_t>(pass);
    if (pass.dy.type == DType::f16) return run_column_sums<f16_t>(pass);
  }
  const auto run = [&](auto dy_type, auto before_type, auto du_type) {
    using D = decltype(dy_type);
    using B = decltype(before_type);
    using U = decltype(du_type);
    if (eights) {
      run_gradient<8, D, B, U>(pass);
    } else {
      run_gradient<1, D, B, U>(pass);
    }
  };
  const auto is_f16 = [](const Tensor& t) { return t && t.type == DType::f16; };
  if (is_f16(pass.dy) || is_f16(pass.before) || is_f16(pass.du)) {
    expect((!pass.before || is_f16(pass.before)) && (!pass.du || is_f16(pass.du)), "f16 mixed with another type");
    return is_f16(pass.dy) ? run(f16_t{}, f16_t{}, f16_t{}) : run(float{}, f16_t{}, f16_t{});
  }
  with_type(pass.dy.type, [&](auto dy_type) {
    with_type(pass.before.type, [&](auto before_type) {
      with_type(pass.du.type, [&](auto du_type) { run(dy_type, before_type, du_type); });
    });
  });
}

int64_t linear_partial_floats(const Tensor& dy) {
  return std::max(chunks_of(dy, 8).count, chunks_of(dy, 1).count) * dy.cols;
}

}  // namespace brisk::cuda
