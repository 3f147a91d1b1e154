// Types are looked at as a kernel runs: the branch is the same for all threads, and memory is what these kernels wait for.
// So there is one kernel for all combinations of them.
#include "base/rounding.h"
#include "ops/cuda/column_sums_cuda.cuh"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/elementwise/elementwise.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// A thread takes eight columns of a row, or one where rows are no whole eights.
template <int kCount>
__global__ void combine_kernel(Combine op, int64_t width) {
  const int64_t per_row = op.y.cols / kCount, at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.y.rows * per_row) return;
  const int64_t row = at / per_row, column = at % per_row * kCount;
  const int64_t b_row = (op.b.rows == 1 ? 0 : row) * op.b.stride;
  Floats<kCount> values;
  if (width == 1) {
    values = load_any<kCount>(op.b, b_row + column);
  } else {  // all of one group
    const float b = load_any<1>(op.b, b_row + column / width).v[0];
    for (int i = 0; i < kCount; ++i) values.v[i] = b;
  }
  if (op.a) {
    const Floats<kCount> a = load_any<kCount>(op.a, row * op.a.stride + column);
    const bool adds = op.kind == Combine::Kind::add;
    for (int i = 0; i < kCount; ++i) values.v[i] = adds ? a.v[i] + values.v[i] : a.v[i] * values.v[i];
  }
  if (op.y_adds) {
    const Floats<kCount> before = load_any<kCount>(op.y, row * op.y.stride + column);
    for (int i = 0; i < kCount; ++i) values.v[i] += before.v[i];
  }
  store_any(op.y, row * op.y.stride + column, values);
}

// a, or a * b.
template <int kCount>
__device__ Floats<kCount> product_of(const Tensor& a, const Tensor& b, int64_t row, int64_t column) {
  Floats<kCount> values = load_any<kCount>(a, row * a.stride + column);
  if (b) {
    const Floats<kCount> factors = load_any<kCount>(b, row * b.stride + column);
    for (int i = 0; i < kCount; ++i) values.v[i] *= factors.v[i];
  }
  return values;
}

// `lanes` neighbouring lanes share the columns of one sum.
template <int kCount>
__global__ void sum_columns_kernel(SumColumns op, int64_t width, int lanes) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / lanes;
  const bool exists = at < op.y.rows * op.y.cols;
  const int64_t row = exists ? at / op.y.cols : 0, group = exists ? at % op.y.cols : 0;
  float sum = 0;
  for (int64_t c = threadIdx.x % lanes * kCount; exists && c < width; c += lanes * kCount) {
    const Floats<kCount> values = product_of<kCount>(op.a, op.b, row, group * width + c);
    for (int i = 0; i < kCount; ++i) sum += values.v[i];
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (!exists || threadIdx.x % lanes != 0) return;
  const int64_t to = row * op.y.stride + group;
  if (op.y_adds) sum += load_any<1>(op.y, to).v[0];
  store_any(op.y, to, Floats<1>{{sum}});
}

// A block sums one part of the rows for 32 * kCount columns; its warps take rows in turn.
template <int kCount>
__global__ void __launch_bounds__(kThreads) sum_rows_kernel(SumRows op, int64_t rows_of_part) {
  __shared__ float shared[kWarps][32 * kCount];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * 32 + lane) * kCount;
  const int64_t begin = blockIdx.y * rows_of_part, end = min(op.a.rows, begin + rows_of_part);
  Floats<kCount> sums = {};
  for (int64_t row = begin + warp; column < op.a.cols && row < end; row += kWarps) {
    const Floats<kCount> values = product_of<kCount>(op.a, op.b, row, column);
    for (int i = 0; i < kCount; ++i) sums.v[i] += values.v[i];
  }
  for (int i = 0; i < kCount; ++i) shared[warp][lane * kCount + i] = sums.v[i];
  __syncthreads();
  for (int i = threadIdx.x; i < 32 * kCount; i += kThreads) {
    const int64_t c = static_cast<int64_t>(blockIdx.x) * 32 * kCount + i;
    float total = 0;
    for (int w = 0; w < kWarps; ++w) total += shared[w][i];
    if (c < op.a.cols) op.scratch.f32()[blockIdx.y * op.scratch.stride + c] = total;
  }
}

}  // namespace

void combine(const Combine& op) {
  expect(op.y.cols % op.b.cols == 0, "columns that are broadcast evenly");
  const int64_t width = op.y.cols / op.b.cols;
  const bool eights = in_eights(op.a) && in_eights(op.y) && (width == 1 ? in_eights(op.b) : width % 8 == 0);
  const int64_t blocks = divide_up(op.y.rows * op.y.cols / (eights ? 8 : 1), kThreads);
  launch(eights ? combine_kernel<8> : combine_kernel<1>, {.blocks = blocks, .threads = kThreads}, op, width);
}

void sum_columns(const SumColumns& op) {
  expect(op.a.cols % op.y.cols == 0, "columns that are summed evenly");
  const int64_t width = op.a.cols / op.y.cols;
  const bool eights = in_eights(op.a) && in_eights(op.b) && width % 8 == 0;
  const int lanes = lanes_for(width / (eights ? 8 : 1));
  const int64_t blocks = divide_up(op.y.rows * op.y.cols * lanes, kThreads);
  launch(eights ? sum_columns_kernel<8> : sum_columns_kernel<1>, {.blocks = blocks, .threads = kThreads}, op, width,
         lanes);
}

void sum_rows(const SumRows& op) {
  const bool eights = in_eights(op.a) && in_eights(op.b);
  const int64_t rows = divide_up(op.a.rows, kSumRowsParts), parts = rows == 0 ? 0 : divide_up(op.a.rows, rows);
  launch(eights ? sum_rows_kernel<8> : sum_rows_kernel<1>,
         {.blocks = divide_up(op.a.cols, int64_t{eights ? 256 : 32}), .blocks_y = parts, .threads = kThreads}, op,
         rows);
  launch(add_parts_kernel, add_parts_shape(op.a.cols, 1),
         PartSums{op.scratch.f32(), parts, op.scratch.stride, op.a.cols, {op.y.f32()}, {op.y_adds}});
}

}  // namespace brisk::cuda
