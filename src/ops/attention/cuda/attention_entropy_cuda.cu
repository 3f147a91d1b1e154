// Attention that also tells the entropy of each row's weights, averaged over the heads: f32 throughout. Neighbouring lanes
// are the heads of one query (or key), so that the mean over the heads is a sum over lanes.
#include <algorithm>

#include "base/rounding.h"
#include "ops/attention/cuda/attention_cuda.cuh"
#include "ops/attention/cuda/attention_entropy_cuda.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

__device__ float sum_of_heads(float value, int heads) {
  for (int distance = heads / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

template <int kWidth>
struct HeadRow {
  float v[kWidth];
  __device__ void load_from(const Tensor& t, int64_t row, int head) {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) v[c] = load_any<1>(t, row * t.stride + head * kWidth + c).v[0];
  }
  __device__ void store_to(const Tensor& t, int64_t row, int head, float scale) const {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) store_any(t, row * t.stride + head * kWidth + c, Floats<1>{{scale * v[c]}});
  }
  __device__ float dot(const HeadRow& other) const {
    float sum = 0;
#pragma unroll
    for (int c = 0; c < kWidth; ++c) sum += v[c] * other.v[c];
    return sum;
  }
  __device__ void add(float factor, const HeadRow& other) {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) v[c] += factor * other.v[c];
  }
};

// Zeros in rows from `begin` on; the blocks of x share them.
__device__ void clear_rows_from(const Tensor& t, int64_t begin) {
  const int64_t count = (t.rows - begin) * t.cols;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < count;
       at += static_cast<int64_t>(gridDim.x) * kThreads) {
    store_any(t, (begin + at / t.cols) * t.stride + at % t.cols, Floats<1>{{0.0f}});
  }
}

// What the entropy's gradient adds to that of a probability after dropout, where the mean over the heads is `weight`.
__device__ float entropy_slope(float weight, float dentropy, int heads) {
  const float shifted = weight + kEntropyEpsilon;
  return -dentropy / static_cast<float>(heads) * (logf(shifted) + weight / shifted);
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads) entropy_forward_kernel(AttentionForward op, Draws draws) {
  if (blockIdx.z == op.queries.sequences) {
    const int64_t end = op.queries.starts[op.queries.sequences];
    clear_rows_from(op.y, end);
    return clear_rows_from(op.entropy, end);
  }
  const AttentionSpan span = attention_span(op, blockIdx.z);
  const int heads = static_cast<int>(op.shape.heads), head = threadIdx.x % heads, per_block = kThreads / heads;
  const int first = static_cast<int>(blockIdx.x) * per_block, query = first + threadIdx.x / heads;
  if (first >= span.queries) return;
  const bool exists = query < span.queries;
  const int64_t row = span.first_query + (exists ? query : 0);
  const int seen = exists ? span.seen_by(query, op.shape.causal) : 0;
  const int key_end = span.seen_by(min(first + per_block, span.queries) - 1, op.shape.causal);
  const uint32_t row_key = attention_row_key(draws, head, row);
  HeadRow<kWidth> q, k, v, y{};
  q.load_from(op.q, row, head);
  float largest = -INFINITY, sum = 0;
  for (int j = 0; j < seen; ++j) {
    k.load_from(op.k, span.first_key + j, head);
    largest = fmaxf(largest, q.dot(k) * op.shape.scale);
  }
  for (int j = 0; j < seen; ++j) {
    k.load_from(op.k, span.first_key + j, head);
    v.load_from(op.v, span.first_key + j, head);
    const float power = expf(q.dot(k) * op.shape.scale - largest);
    sum += power;
    y.add(power * draws.factor(row_key, j), v);
  }
  const float inverse = sum > 0 ? 1.0f / sum : 0.0f;
  float entropy = 0;
  for (int j = 0; j < key_end; ++j) {  // the same keys in all lanes, which add up their heads
    float kept = 0;
    if (j < seen) {
      k.load_from(op.k, span.first_key + j, head);
      kept = expf(q.dot(k) * op.shape.scale - largest) * inverse * draws.factor(row_key, j);
    }
    const float weight = sum_of_heads(kept, heads) / static_cast<float>(heads);
    entropy -= weight * logf(weight + kEntropyEpsilon);
  }
  if (!exists) return;
  y.store_to(op.y, row, head, inverse);
  if (op.log_sum_exp) {
    op.log_sum_exp.f32()[row * op.log_sum_exp.stride + head] = sum > 0 ? largest + logf(sum) : -INFINITY;
  }
  if (head == 0) op.entropy.f32()[row * op.entropy.stride] = entropy;
}

// dq, and what is subtracted from every slope of a query and head into products [Nq, H].
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    entropy_backward_queries_kernel(AttentionBackward op, Draws draws, float* products) {
  const AttentionForward& forward = op.forward;
  if (blockIdx.z == forward.queries.sequences) {
    return clear_rows_from(op.dq, forward.queries.starts[forward.queries.sequences]);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const AttentionShape& shape = forward.shape;
  const int heads = static_cast<int>(shape.heads), head = threadIdx.x % heads, per_block = kThreads / heads;
  const int first = static_cast<int>(blockIdx.x) * per_block, query = first + threadIdx.x / heads;
  if (first >= span.queries) return;
  const bool exists = query < span.queries;
  const int64_t row = span.first_query + (exists ? query : 0);
  const int seen = exists ? span.seen_by(query, shape.causal) : 0;
  const int key_end = span.seen_by(min(first + per_block, span.queries) - 1, shape.causal);
  const uint32_t row_key = attention_row_key(draws, head, row);
  const float dentropy = op.dentropy.f32()[row * op.dentropy.stride];
  const float log_sum = forward.log_sum_exp.f32()[row * forward.log_sum_exp.stride + head];
  HeadRow<kWidth> q, dy, y, k, v, dq{};
  q.load_from(forward.q, row, head);
  dy.load_from(op.dy, row, head);
  y.load_from(forward.y, row, head);
  float product = dy.dot(y);
  const auto probability = [&](int j) {
    k.load_from(forward.k, span.first_key + j, head);
    return expf(q.dot(k) * shape.scale - log_sum);
  };
  for (int j = 0; j < key_end; ++j) {
    const float kept = j < seen ? probability(j) * draws.factor(row_key, j) : 0.0f;
    product += kept * entropy_slope(sum_of_heads(kept, heads) / static_cast<float>(heads), dentropy, heads);
  }
  for (int j = 0; j < key_end; ++j) {
    const float p = j < seen ? probability(j) : 0.0f, kept = p * draws.factor(row_key, j);
    const float slope = entropy_slope(sum_of_heads(kept, heads) / static_cast<float>(heads), dentropy, heads);
    if (j >= seen) continue;
    v.load_from(forward.v, span.first_key + j, head);
    dq.add(kept * (dy.dot(v) + slope) - p * product, k);
  }
  if (!exists) return;
  dq.store_to(op.dq, row, head, shape.scale);
  products[row * heads + head] = product;
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    entropy_backward_keys_kernel(AttentionBackward op, Draws draws, const float* products) {
  const AttentionForward& forward = op.forward;
  const int64_t sequences = forward.queries.sequences;
  if (blockIdx.z == sequences) {
    const int64_t end = sequences > 0 ? forward.k_end[sequences - 1] : 0;
    clear_rows_from(op.dk, end);
    return clear_rows_from(op.dv, end);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const AttentionShape& shape = forward.shape;
  const int heads = static_cast<int>(shape.heads), head = threadIdx.x % heads, per_block = kThreads / heads;
  const int first = static_cast<int>(blockIdx.x) * per_block, key = first + threadIdx.x / heads;
  if (first >= span.keys) return;
  const bool exists = key < span.keys;
  const int64_t key_row = span.first_key + (exists ? key : 0);
  HeadRow<kWidth> k, v, q, dy, dk{}, dv{};
  k.load_from(forward.k, key_row, head);
  v.load_from(forward.v, key_row, head);
  for (int query = span.first_seeing(first, shape.causal); query < span.queries; ++query) {
    const int64_t row = span.first_query + query;
    float p = 0, kept = 0;
    if (exists && key < span.seen_by(query, shape.causal)) {
      q.load_from(forward.q, row, head);
      p = expf(q.dot(k) * shape.scale - forward.log_sum_exp.f32()[row * forward.log_sum_exp.stride + head]);
      kept = p * draws.factor(attention_row_key(draws, head, row), key);
    }
    const float weight = sum_of_heads(kept, heads) / static_cast<float>(heads);
    if (p == 0) continue;
    const float slope = entropy_slope(weight, op.dentropy.f32()[row * op.dentropy.stride], heads);
    dy.load_from(op.dy, row, head);
    dk.add(kept * (dy.dot(v) + slope) - p * products[row * heads + head], q);
    dv.add(kept, dy);
  }
  if (!exists) return;
  dk.store_to(op.dk, key_row, head, shape.scale);
  dv.store_to(op.dv, key_row, head, 1.0f);
}

template <int kWidth>
struct HeadWidth {
  static constexpr int width = kWidth;
};
template <typename Body>
void with_head_width(const AttentionShape& shape, const Body& body) {
  const bool whole_lanes = shape.heads <= 32 && (shape.heads & (shape.heads - 1)) == 0;
  expect(whole_lanes && shape.heads == shape.kv_heads, "1, 2, 4, 8, 16 or 32 heads with keys of their own");
  if (shape.head_width == 2) return body(HeadWidth<2>{});
  if (shape.head_width == 4) return body(HeadWidth<4>{});
  expect(shape.head_width == 8, "heads of width 2, 4 or 8");
  body(HeadWidth<8>{});
}

Launch rows_and_heads(int64_t longest, int64_t heads, int64_t sequences) {
  return {.blocks = std::max<int64_t>(1, divide_up(longest * heads, int64_t{kThreads})),
          .blocks_z = sequences + 1,
          .threads = kThreads};
}

}  // namespace

void attention_forward_with_entropy(const AttentionForward& op) {
  with_head_width(op.shape, [&](auto width) {
    launch(entropy_forward_kernel<decltype(width)::width>,
           rows_and_heads(op.queries.longest, op.shape.heads, op.queries.sequences), op,
           draws_of(op.dropout, op.queries));
  });
}

void attention_backward_with_entropy(const AttentionBackward& op) {
  const AttentionForward& forward = op.forward;
  const Draws draws = draws_of(forward.dropout, forward.queries);
  auto* products = static_cast<float*>(workspace(std::max<int64_t>(1, forward.q.rows) * forward.shape.heads * 4));
  with_head_width(forward.shape, [&](auto width) {
    const int64_t heads = forward.shape.heads, sequences = forward.queries.sequences;
    launch(entropy_backward_queries_kernel<decltype(width)::width>,
           rows_and_heads(forward.queries.longest, heads, sequences), op, draws, products);
    launch(entropy_backward_keys_kernel<decltype(width)::width>, rows_and_heads(forward.longest_keys, heads, sequences),
           op, draws, static_cast<const float*>(products));
  });
}

}  // namespace brisk::cuda
