// A warp has one row and one head. Scores are in shared memory; the gradients of keys and of the bias are computed again from
// the queries and log_sum_exp, so that every number is written once, by a sum in a fixed order.
#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/grid_attention/grid_attention.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;

__device__ float number_at(const Tensor& t, int64_t row, int64_t col) {
  return load_any<1>(t, row * t.stride + col).v[0];
}

__device__ float product_of_rows(const Tensor& a, int64_t a_row, int64_t a_col, const Tensor& b, int64_t b_row,
                                 int64_t b_col, int64_t width) {
  float sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += number_at(a, a_row, a_col + c) * number_at(b, b_row, b_col + c);
  return sum;
}

// The warp's row, its head and its region.
struct GridRow {
  __device__ GridRow(const GridAttentionForward& op, int64_t row, int64_t head)
      : row(row), head(head), width(op.shape.head_width), windows(op.shape.windows) {
    exists = row < op.rows.starts[op.rows.sequences];
    if (!exists) return;
    const int64_t rows = windows.rows(), at = row % rows;
    start = row - at;
    region = windows.region(windows.region_at(static_cast<int32_t>(at)));
    count = windows.rows_of(region);
    index = 0;
    while (windows.row_of(region, index) != at) ++index;
    q = head * width;
    k = q + op.shape.heads * width;
    v = k + op.shape.heads * width;
  }
  __device__ int64_t row_of(int32_t i) const { return start + windows.row_of(region, i); }
  // The column of the bias for queries `i` and keys `j` of the region.
  __device__ int64_t pair(int32_t i, int32_t j) const {
    return int64_t{windows.place_of(region, i)} * windows.places() + windows.place_of(region, j);
  }
  int64_t row, head, width, start = 0, q = 0, k = 0, v = 0;
  GridWindows windows;
  GridRegion region;
  int32_t count = 0, index = 0;
  bool exists;
};

__device__ float score_of(const GridAttentionForward& op, const GridRow& at, int32_t i, int32_t j) {
  float score = op.shape.scale() * product_of_rows(op.qkv, at.row_of(i), at.q, op.qkv, at.row_of(j), at.k, at.width);
  if (op.bias) score += op.bias.f32()[at.head * op.bias.stride + at.pair(i, j)];
  return score;
}

__device__ uint32_t draws_of(const GridAttentionForward& op, const GridRow& at, int64_t row) {
  return op.dropout.active() ? attention_dropout(op.dropout, at.head).row_key(op.rows, row) : 0;
}

__global__ void __launch_bounds__(kThreads) grid_forward_kernel(GridAttentionForward op) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const GridRow at(op, static_cast<int64_t>(blockIdx.x) * kWarps + warp, blockIdx.y);
  if (at.row >= op.y.rows) return;
  float* scores = reinterpret_cast<float*>(dynamic_shared()) + warp * at.windows.places();
  float largest = -3.0e38f, total = 0;
  for (int32_t j = lane; j < at.count; j += 32) {
    scores[j] = score_of(op, at, at.index, j);
    largest = fmaxf(largest, scores[j]);
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, distance));
  }
  const uint32_t draws = at.exists ? draws_of(op, at, at.row) : 0;
  for (int32_t j = lane; j < at.count; j += 32) {
    const float power = expf(scores[j] - largest);
    total += power;
    scores[j] = power * op.dropout.factor(draws, j);
  }
  total = sum_of_lanes<32>(total);
  __syncwarp();
  for (int64_t c = lane; c < at.width; c += 32) {
    float sum = 0;
    for (int32_t j = 0; j < at.count; ++j) sum += scores[j] * number_at(op.qkv, at.row_of(j), at.v + c);
    store_any(op.y, at.row * op.y.stride + at.head * at.width + c, Floats<1>{{at.exists ? sum / total : 0.0f}});
  }
  if (op.log_sum_exp && lane == 0) {
    op.log_sum_exp.f32()[at.row * op.log_sum_exp.stride + at.head] = at.exists ? largest + logf(total) : 0.0f;
  }
}

// What a score's gradient is made of.
struct Slope {
  float kept_probability;  // what multiplies dy in dv
  float dscore;
};
__device__ Slope slope_at(const GridAttentionBackward& op, const GridRow& at, int32_t i, int32_t j,
                          const float* dy_dot_y) {
  const int64_t query = at.row_of(i), heads = op.forward.shape.heads;
  const float log_sum_exp = op.forward.log_sum_exp.f32()[query * op.forward.log_sum_exp.stride + at.head];
  const float probability = expf(score_of(op.forward, at, i, j) - log_sum_exp);
  const float keep = op.forward.dropout.factor(draws_of(op.forward, at, query), j);
  const float slope = product_of_rows(op.dy, query, at.head * at.width, op.forward.qkv, at.row_of(j), at.v, at.width);
  return {probability * keep, probability * (keep * slope - dy_dot_y[query * heads + at.head])};
}

__global__ void dy_dot_y_kernel(GridAttentionBackward op, float* dy_dot_y) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, heads = op.forward.shape.heads;
  if (at >= op.dy.rows * heads) return;
  const int64_t width = op.forward.shape.head_width, column = at % heads * width;
  dy_dot_y[at] = product_of_rows(op.dy, at / heads, column, op.forward.y, at / heads, column, width);
}

// The gradients of the row's query, key and value.
__global__ void __launch_bounds__(kThreads) grid_backward_kernel(GridAttentionBackward op, const float* dy_dot_y) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const GridRow at(op.forward, static_cast<int64_t>(blockIdx.x) * kWarps + warp, blockIdx.y);
  if (at.row >= op.dqkv.rows) return;
  const int32_t places = at.windows.places();
  float* of_query = reinterpret_cast<float*>(dynamic_shared()) + warp * 3 * places;  // as the query, as the key
  float *of_key = of_query + places, *kept = of_key + places;
  for (int32_t j = lane; j < at.count; j += 32) {
    of_query[j] = slope_at(op, at, at.index, j, dy_dot_y).dscore;
    const Slope slope = slope_at(op, at, j, at.index, dy_dot_y);
    of_key[j] = slope.dscore;
    kept[j] = slope.kept_probability;
  }
  __syncwarp();
  const Tensor& qkv = op.forward.qkv;
  const float scale = op.forward.shape.scale();
  const int64_t all = op.forward.shape.heads * at.width, column = at.head * at.width;
  for (int64_t c = lane; c < at.width; c += 32) {
    float dq = 0, dk = 0, dv = 0;
    for (int32_t j = 0; j < at.count; ++j) {
      const int64_t row = at.row_of(j);
      dq += of_query[j] * number_at(qkv, row, at.k + c);
      dk += of_key[j] * number_at(qkv, row, at.q + c);
      dv += kept[j] * number_at(op.dy, row, column + c);
    }
    const int64_t to = at.row * op.dqkv.stride + column + c;
    store_any(op.dqkv, to, Floats<1>{{dq * scale}});
    store_any(op.dqkv, to + all, Floats<1>{{dk * scale}});
    store_any(op.dqkv, to + 2 * all, Floats<1>{{dv}});
  }
}

// A thread has one pair of places of a head, and one part of the regions of all sequences.
__global__ void __launch_bounds__(kThreads)
    grid_bias_kernel(GridAttentionBackward op, const float* dy_dot_y, int64_t parts) {
  const GridAttentionForward& forward = op.forward;
  const GridWindows& windows = forward.shape.windows;
  const int64_t pair = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t head = blockIdx.y, part = blockIdx.z;
  if (pair >= op.dbias.cols) return;
  const auto query = static_cast<int32_t>(pair / windows.places()), key = static_cast<int32_t>(pair % windows.places());
  const int64_t regions = windows.regions(), all = forward.rows.sequences * regions;
  float sum = 0;
  for (int64_t at = part * all / parts; at < (part + 1) * all / parts; ++at) {
    const int64_t start = forward.rows.starts[at / regions];
    if (forward.rows.starts[at / regions + 1] == start) continue;
    const GridRegion region = windows.region(static_cast<int32_t>(at % regions));
    const int32_t i = windows.index_of(region, query), j = windows.index_of(region, key);
    if (i < 0 || j < 0) continue;
    const GridRow row(forward, start + windows.row_of(region, i), head);
    sum += slope_at(op, row, i, j, dy_dot_y).dscore;
  }
  op.dbias_parts.f32()[(part * forward.shape.heads + head) * op.dbias_parts.stride + pair] = sum;
}

__global__ void grid_bias_sums_kernel(GridAttentionBackward op, int64_t parts) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.dbias.rows * op.dbias.cols) return;
  const int64_t head = at / op.dbias.cols, pair = at % op.dbias.cols;
  float sum = 0;
  for (int64_t part = 0; part < parts; ++part) {
    sum += op.dbias_parts.f32()[(part * op.dbias.rows + head) * op.dbias_parts.stride + pair];
  }
  op.dbias.f32()[head * op.dbias.stride + pair] = sum;
}

Launch by_rows(const GridAttentionForward& op, int64_t numbers_of_a_place) {
  const int64_t shared = kWarps * numbers_of_a_place * op.shape.windows.places() * int64_t{sizeof(float)};
  expect(fits_shared_memory(shared), "a window's scores in shared memory");
  return {.blocks = divide_up(op.qkv.rows, kWarps),
          .blocks_y = op.shape.heads,
          .threads = kThreads,
          .shared_bytes = shared};
}

}  // namespace

void grid_attention_forward(const GridAttentionForward& op) { launch(grid_forward_kernel, by_rows(op, 1), op); }

void grid_attention_backward(const GridAttentionBackward& op) {
  const int64_t heads = op.forward.shape.heads;
  if (op.dy.rows == 0) {
    if (op.dbias)
      launch(grid_bias_sums_kernel, {.blocks = divide_up(op.dbias.rows * op.dbias.cols, kThreads), .threads = kThreads},
             op, int64_t{0});
    return;
  }
  auto* dy_dot_y = static_cast<float*>(workspace(op.dy.rows * heads * int64_t{sizeof(float)}));
  launch(dy_dot_y_kernel, {.blocks = divide_up(op.dy.rows * heads, kThreads), .threads = kThreads}, op, dy_dot_y);
  launch(grid_backward_kernel, by_rows(op.forward, 3), op, dy_dot_y);
  if (!op.dbias) return;
  const int64_t parts = grid_bias_parts(op.forward.shape, op.forward.rows.sequences);
  launch(grid_bias_kernel,
         {.blocks = divide_up(op.dbias.cols, kThreads), .blocks_y = heads, .blocks_z = parts, .threads = kThreads}, op,
         dy_dot_y, parts);
  launch(grid_bias_sums_kernel, {.blocks = divide_up(op.dbias.rows * op.dbias.cols, kThreads), .threads = kThreads}, op,
         parts);
}

}  // namespace brisk::cuda
