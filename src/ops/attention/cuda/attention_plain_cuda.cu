// Attention without tensor cores: f32 throughout. A block has 32 queries (or keys) in shared memory and goes over tiles
// of 32 keys (or queries). A warp has four of its rows; a lane is one row of the other side while scores are made, and
// every 32nd column of the head while they are applied.
#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/attention/cuda/attention_cuda.cuh"
#include "ops/attention/cuda/attention_variants_cuda.h"

namespace brisk::cuda {

namespace {

constexpr int kTile = 32;
constexpr int kThreads = 256;
constexpr int kRows = 4;  // of a warp

// Rows of a head in shared memory; the four floats more keep lanes out of each other's banks.
template <int kParts>
struct Tile {
  static constexpr int kStride = kParts * 32 + 4;
  static constexpr int kFloats = kTile * kStride;
  float* data;

  // Rows [first, first + kTile) of `count` from row `begin` on; zeros beyond, and beyond the head's width.
  template <typename T>
  __device__ void fill(const Tensor& t, int64_t begin, int64_t first, int64_t count, int64_t head, int64_t width) {
    for (int at = threadIdx.x; at < kTile * kParts * 32; at += kThreads) {
      const int row = at / (kParts * 32), column = at % (kParts * 32);
      float value = 0;
      if (first + row < count && column < width) {
        value = load_one(static_cast<const T*>(t.data) + (begin + first + row) * t.stride + head * width + column);
      }
      data[row * kStride + column] = value;
    }
  }
  __device__ float at(int row, int column) const { return data[row * kStride + column]; }
};

// sums[r] = row `mine` + r of a times row `other` of b.
template <int kParts>
__device__ void row_products(const Tile<kParts>& a, int mine, const Tile<kParts>& b, int other, float (&sums)[kRows]) {
  for (int r = 0; r < kRows; ++r) sums[r] = 0;
  for (int column = 0; column < kParts * 32; column += 4) {
    const float4 y = *reinterpret_cast<const float4*>(b.data + other * b.kStride + column);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 x = *reinterpret_cast<const float4*>(a.data + (mine + r) * a.kStride + column);
      sums[r] += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
    }
  }
}

// out[r] += sum over lanes l of weights[r] (of lane l) times row l of b.
template <int kParts>
__device__ void add_weighted_rows(const float (&weights)[kRows], const Tile<kParts>& b, float (&out)[kRows][kParts]) {
  const int lane = threadIdx.x % 32;
  for (int row = 0; row < kTile; ++row) {
    float values[kParts];
#pragma unroll
    for (int part = 0; part < kParts; ++part) values[part] = b.at(row, part * 32 + lane);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float weight = __shfl_sync(~0u, weights[r], row);
#pragma unroll
      for (int part = 0; part < kParts; ++part) out[r][part] += weight * values[part];
    }
  }
}

// What is added to the score of a key, or 0.
__device__ float bias_of(const AttentionForward& op, const AttentionSpan& span, int64_t head, int64_t query,
                         int64_t key) {
  if (op.bias.data == nullptr) return 0;
  const int64_t distance = key - first_position(op.shape, span.queries, span.keys) - query;
  return static_cast<const float*>(op.bias.data)[head * op.bias.stride + op.bias.cols / 2 + distance];
}

__device__ float max_of_warp(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

template <typename T, int kParts>
__global__ void __launch_bounds__(kThreads) forward_plain_kernel(AttentionForward op, Draws draws) {
  const int64_t head = blockIdx.y, width = op.shape.head_width;
  if (blockIdx.z == op.queries.sequences) {
    return clear_head_rows<T>(op.y, op.queries.starts[op.queries.sequences], head, width);
  }
  const AttentionSpan span = attention_span(op, blockIdx.z);
  const int64_t kv_head = head / (op.shape.heads / op.shape.kv_heads), first = int64_t{blockIdx.x} * kTile;
  if (first >= span.queries) return;
  float* memory = reinterpret_cast<float*>(dynamic_shared());
  Tile<kParts> q{memory}, k{memory + Tile<kParts>::kFloats}, v{memory + 2 * Tile<kParts>::kFloats};
  q.template fill<T>(op.q, span.first_query, first, span.queries, head, width);

  const int lane = threadIdx.x % 32, mine = threadIdx.x / 32 * kRows;
  float largest[kRows], sum[kRows] = {}, out[kRows][kParts] = {};
  int64_t seen[kRows];
  uint32_t row_keys[kRows] = {};
  for (int r = 0; r < kRows; ++r) {
    const int64_t query = first + mine + r;
    largest[r] = -INFINITY;
    seen[r] = query < span.queries ? span.seen_by(static_cast<int>(query), op.shape.causal) : 0;
    if (query < span.queries) row_keys[r] = attention_row_key(draws, head, span.first_query + query);
  }
  const int64_t key_end =
      span.seen_by(static_cast<int>(min(first + kTile, int64_t{span.queries})) - 1, op.shape.causal);
  for (int64_t key = 0; key < key_end; key += kTile) {
    __syncthreads();
    k.template fill<T>(op.k, span.first_key, key, span.keys, kv_head, width);
    v.template fill<T>(op.v, span.first_key, key, span.keys, kv_head, width);
    __syncthreads();
    float scores[kRows];
    row_products(q, mine, k, lane, scores);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float score = -INFINITY;
      if (key + lane < seen[r]) {
        score = scores[r] * op.shape.scale + bias_of(op, span, head, first + mine + r, key + lane);
      }
      const float highest = fmaxf(largest[r], max_of_warp(score));
      const float from = highest == -INFINITY ? 0.0f : highest;
      const float shrink = expf(largest[r] - from), weight = expf(score - from);
      largest[r] = highest;
      sum[r] = sum[r] * shrink + sum_of_lanes<32>(weight);
      for (int part = 0; part < kParts; ++part) out[r][part] *= shrink;
      scores[r] = weight * draws.factor(row_keys[r], key + lane);
    }
    add_weighted_rows(scores, v, out);
  }
  for (int r = 0; r < kRows; ++r) {
    if (first + mine + r >= span.queries) continue;
    const int64_t row = span.first_query + first + mine + r;
    for (int part = 0; part < kParts; ++part) {
      const int64_t column = part * 32 + lane;
      if (column >= width) continue;
      store_one(static_cast<T*>(op.y.data) + row * op.y.stride + head * width + column,
                sum[r] == 0 ? 0.0f : out[r][part] / sum[r]);
    }
    if (lane == 0 && op.log_sum_exp.data != nullptr) {
      static_cast<float*>(op.log_sum_exp.data)[row * op.log_sum_exp.stride + head] =
          sum[r] > 0 ? largest[r] + logf(sum[r]) : -INFINITY;
    }
  }
}

// dq, and dy.y of every query and head into dy_y [Nq, H].
template <typename T, int kParts>
__global__ void __launch_bounds__(kThreads)
    backward_queries_plain_kernel(AttentionBackward op, Draws draws, float* dy_y) {
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int64_t head = blockIdx.y, width = shape.head_width;
  if (blockIdx.z == forward.queries.sequences) {
    return clear_head_rows<T>(op.dq, forward.queries.starts[forward.queries.sequences], head, width);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const int64_t kv_head = head / (shape.heads / shape.kv_heads), first = int64_t{blockIdx.x} * kTile;
  if (first >= span.queries) return;
  float* memory = reinterpret_cast<float*>(dynamic_shared());
  constexpr int kFloats = Tile<kParts>::kFloats;
  Tile<kParts> q{memory}, dy{memory + kFloats}, k{memory + 2 * kFloats}, v{memory + 3 * kFloats};
  q.template fill<T>(forward.q, span.first_query, first, span.queries, head, width);
  dy.template fill<T>(op.dy, span.first_query, first, span.queries, head, width);
  __syncthreads();

  const int lane = threadIdx.x % 32, mine = threadIdx.x / 32 * kRows;
  float log_sum[kRows] = {}, product[kRows] = {}, out[kRows][kParts] = {};
  int64_t seen[kRows];
  uint32_t row_keys[kRows] = {};
  for (int r = 0; r < kRows; ++r) {
    const int64_t query = first + mine + r, row = span.first_query + query;
    const bool exists = query < span.queries;
    seen[r] = exists ? span.seen_by(static_cast<int>(query), shape.causal) : 0;
    if (exists) {
      row_keys[r] = attention_row_key(draws, head, row);
      log_sum[r] = static_cast<const float*>(forward.log_sum_exp.data)[row * forward.log_sum_exp.stride + head];
      for (int64_t c = lane; c < width; c += 32) {
        product[r] += dy.at(mine + r, static_cast<int>(c)) *
                      load_one(static_cast<const T*>(forward.y.data) + row * forward.y.stride + head * width + c);
      }
    }
    product[r] = sum_of_lanes<32>(product[r]);
    if (exists && lane == 0) dy_y[row * shape.heads + head] = product[r];
  }
  const int64_t key_end = span.seen_by(static_cast<int>(min(first + kTile, int64_t{span.queries})) - 1, shape.causal);
  for (int64_t key = 0; key < key_end; key += kTile) {
    __syncthreads();
    k.template fill<T>(forward.k, span.first_key, key, span.keys, kv_head, width);
    v.template fill<T>(forward.v, span.first_key, key, span.keys, kv_head, width);
    __syncthreads();
    float scores[kRows], slopes[kRows];
    row_products(q, mine, k, lane, scores);
    row_products(dy, mine, v, lane, slopes);
    for (int r = 0; r < kRows; ++r) {
      float p = 0;
      if (key + lane < seen[r]) {
        const float bias = bias_of(forward, span, head, first + mine + r, key + lane);
        p = expf(scores[r] * shape.scale + bias - log_sum[r]);
      }
      slopes[r] = p * (draws.factor(row_keys[r], key + lane) * slopes[r] - product[r]) * shape.scale;
    }
    add_weighted_rows(slopes, k, out);
  }
  for (int r = 0; r < kRows; ++r) {
    if (first + mine + r >= span.queries) continue;
    const int64_t row = span.first_query + first + mine + r;
    for (int part = 0; part < kParts; ++part) {
      const int64_t column = part * 32 + lane;
      if (column >= width) continue;
      store_one(static_cast<T*>(op.dq.data) + row * op.dq.stride + head * width + column, out[r][part]);
    }
  }
}

// dk and dv: the block's rows are keys, a lane is a query.
template <typename T, int kParts>
__global__ void __launch_bounds__(kThreads)
    backward_keys_plain_kernel(AttentionBackward op, Draws draws, const float* dy_y) {
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int64_t kv_head = blockIdx.y, width = shape.head_width, sequences = forward.queries.sequences;
  if (blockIdx.z == sequences) {
    const int64_t end = sequences > 0 ? forward.k_end[sequences - 1] : 0;
    clear_head_rows<T>(op.dk, end, kv_head, width);
    return clear_head_rows<T>(op.dv, end, kv_head, width);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const int64_t first = int64_t{blockIdx.x} * kTile;
  if (first >= span.keys) return;
  float* memory = reinterpret_cast<float*>(dynamic_shared());
  constexpr int kFloats = Tile<kParts>::kFloats;
  Tile<kParts> q{memory}, dy{memory + kFloats}, k{memory + 2 * kFloats}, v{memory + 3 * kFloats};
  k.template fill<T>(forward.k, span.first_key, first, span.keys, kv_head, width);
  v.template fill<T>(forward.v, span.first_key, first, span.keys, kv_head, width);

  const int lane = threadIdx.x % 32, mine = threadIdx.x / 32 * kRows;
  float dk[kRows][kParts] = {}, dv[kRows][kParts] = {};
  const int64_t group = shape.heads / shape.kv_heads;
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int64_t query = span.first_seeing(static_cast<int>(first), shape.causal) / kTile * kTile; query < span.queries;
         query += kTile) {
      __syncthreads();
      q.template fill<T>(forward.q, span.first_query, query, span.queries, head, width);
      dy.template fill<T>(op.dy, span.first_query, query, span.queries, head, width);
      __syncthreads();
      const int64_t row = span.first_query + query + lane;
      const bool exists = query + lane < span.queries;
      const int64_t seen = exists ? span.seen_by(query + lane, shape.causal) : 0;
      float log_sum = 0, product = 0;
      uint32_t row_key = 0;
      if (exists) {
        log_sum = static_cast<const float*>(forward.log_sum_exp.data)[row * forward.log_sum_exp.stride + head];
        product = dy_y[row * shape.heads + head];
        row_key = attention_row_key(draws, head, row);
      }
      float scores[kRows], slopes[kRows];
      row_products(k, mine, q, lane, scores);
      row_products(v, mine, dy, lane, slopes);
      for (int r = 0; r < kRows; ++r) {
        const int64_t key = first + mine + r;
        float p = 0;
        if (key < seen) {
          p = expf(scores[r] * shape.scale + bias_of(forward, span, head, query + lane, key) - log_sum);
        }
        const float keep = draws.factor(row_key, key);
        slopes[r] = p * (keep * slopes[r] - product) * shape.scale;
        scores[r] = p * keep;
      }
      add_weighted_rows(scores, dy, dv);
      add_weighted_rows(slopes, q, dk);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (first + mine + r >= span.keys) continue;
    const int64_t row = span.first_key + first + mine + r;
    for (int part = 0; part < kParts; ++part) {
      const int64_t column = part * 32 + lane;
      if (column >= width) continue;
      store_one(static_cast<T*>(op.dk.data) + row * op.dk.stride + kv_head * width + column, dk[r][part]);
      store_one(static_cast<T*>(op.dv.data) + row * op.dv.stride + kv_head * width + column, dv[r][part]);
    }
  }
}

// dbias: a warp sums the gradients of the scores of one head and sequence whose keys are at one distance from their query, in
// the order of the queries; its lanes share the head's columns.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    backward_bias_parts_kernel(AttentionBackward op, Draws draws, const float* dy_y) {
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int64_t head = blockIdx.y, width = shape.head_width;
  const int lane = threadIdx.x % 32;
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const BiasPart part = bias_part(forward, blockIdx.z);
  const int64_t at = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (at >= part.count) return;
  const int64_t shift = part.first + at - part.middle + first_position(shape, span.queries, span.keys);
  const auto dot = [&](const Tensor& a, int64_t a_row, const Tensor& b, int64_t b_row) {
    float sum = 0;
    for (int64_t c = lane; c < width; c += 32) {
      sum += load_one(static_cast<const T*>(a.data) + a_row * a.stride + head * width + c) *
             load_one(static_cast<const T*>(b.data) + b_row * b.stride + head * width + c);
    }
    return sum_of_lanes<32>(sum);
  };
  float sum = 0;
  for (int64_t query = max(int64_t{0}, -shift); query < min(int64_t{span.queries}, span.keys - shift); ++query) {
    const int64_t key = query + shift, row = span.first_query + query, key_row = span.first_key + key;
    if (key >= span.seen_by(static_cast<int>(query), shape.causal)) continue;
    const float score =
        dot(forward.q, row, forward.k, key_row) * shape.scale + bias_of(forward, span, head, query, key);
    const float log_sum = static_cast<const float*>(forward.log_sum_exp.data)[row * forward.log_sum_exp.stride + head];
    const float keep = draws.factor(attention_row_key(draws, head, row), key);
    sum += expf(score - log_sum) * (keep * dot(op.dy, row, forward.v, key_row) - dy_y[row * shape.heads + head]);
  }
  if (lane == 0) static_cast<float*>(op.dbias_parts.data)[head * op.dbias_parts.stride + part.first + at] = sum;
}

// The parts of all sequences, in their order.
__global__ void sum_bias_parts_kernel(AttentionBackward op) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, head = blockIdx.y;
  if (column >= op.dbias.cols) return;
  float sum = 0;
  for (int64_t s = 0; s < op.forward.queries.sequences; ++s) {
    const BiasPart part = bias_part(op.forward, s);
    const int64_t at = part.middle + column - op.dbias.cols / 2;
    if (at < part.first || at >= part.first + part.count) continue;
    sum += static_cast<const float*>(op.dbias_parts.data)[head * op.dbias_parts.stride + at];
  }
  static_cast<float*>(op.dbias.data)[head * op.dbias.stride + column] = sum;
}

template <int kParts>
struct HeadParts {
  static constexpr int parts = kParts;
};
template <typename Body>
void with_head_parts(int64_t width, const Body& body) {
  if (width <= 32) return body(HeadParts<1>{});
  if (width <= 64) return body(HeadParts<2>{});
  if (width <= 128) return body(HeadParts<4>{});
  expect(width <= 256, "heads are at most 256 wide");
  body(HeadParts<8>{});
}

Launch tiles(int64_t longest, int64_t heads, int64_t sequences, int64_t shared_floats) {
  return {.blocks = std::max<int64_t>(1, divide_up(longest, kTile)),
          .blocks_y = heads,
          .blocks_z = sequences + 1,
          .threads = kThreads,
          .shared_bytes = shared_floats * 4};
}

}  // namespace

void attention_forward_plain(const AttentionForward& op) {
  const Draws draws = draws_of(op.dropout, op.queries);
  with_any_type(op.q.type, [&](auto type) {
    with_head_parts(op.shape.head_width, [&](auto parts) {
      constexpr int kParts = decltype(parts)::parts;
      launch(forward_plain_kernel<decltype(type), kParts>,
             tiles(op.queries.longest, op.shape.heads, op.queries.sequences, 3 * Tile<kParts>::kFloats), op, draws);
    });
  });
}

void attention_backward_plain(const AttentionBackward& op) {
  const AttentionForward& forward = op.forward;
  const Draws draws = draws_of(forward.dropout, forward.queries);
  auto* dy_y = static_cast<float*>(workspace(std::max<int64_t>(1, forward.q.rows) * forward.shape.heads * 4));
  with_any_type(forward.q.type, [&](auto type) {
    with_head_parts(forward.shape.head_width, [&](auto parts) {
      using T = decltype(type);
      constexpr int kParts = decltype(parts)::parts;
      const int64_t sequences = forward.queries.sequences, floats = 4 * Tile<kParts>::kFloats;
      launch(backward_queries_plain_kernel<T, kParts>,
             tiles(forward.queries.longest, forward.shape.heads, sequences, floats), op, draws, dy_y);
      launch(backward_keys_plain_kernel<T, kParts>,
             tiles(forward.longest_keys, forward.shape.kv_heads, sequences, floats), op, draws,
             static_cast<const float*>(dy_y));
      if (!op.dbias || sequences == 0) return;
      launch(backward_bias_parts_kernel<T>,
             {.blocks = std::max<int64_t>(1, divide_up(forward.queries.longest + forward.longest_keys, kThreads / 32)),
              .blocks_y = forward.shape.heads,
              .blocks_z = sequences,
              .threads = kThreads},
             op, draws, static_cast<const float*>(dy_y));
    });
  });
  if (op.dbias) {
    launch(sum_bias_parts_kernel,
           {.blocks = divide_up(op.dbias.cols, kThreads), .blocks_y = forward.shape.heads, .threads = kThreads}, op);
  }
}

}  // namespace brisk::cuda
