// Attention of narrow heads, 2, 4 or 8 wide, in f32: tensor cores would multiply zeros. A thread has a query (or a key), of
// which everything is in registers; the block goes over tiles of the other side, whose rows all of a warp's lanes read at once.
#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/attention/cuda/attention_cuda.cuh"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 128;  // queries of a block
constexpr int kTile = 128;     // rows of the other side in shared memory
constexpr int kChunk = 16;     // keys that share a maximum; dropout draws for columns c and c + 8 at once
constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;

template <int kWidth>
struct HeadRow {
  float v[kWidth] = {};
  template <typename T>
  __device__ static HeadRow load_from(const Tensor& t, int64_t row, int64_t head) {
    struct alignas(kWidth * sizeof(T) <= 16 ? kWidth * sizeof(T) : 16) Packed {
      T v[kWidth];
    };
    const Packed packed =
        *reinterpret_cast<const Packed*>(static_cast<const T*>(t.data) + row * t.stride + head * kWidth);
    HeadRow row_of_head;
#pragma unroll
    for (int c = 0; c < kWidth; ++c) row_of_head.v[c] = float_of(packed.v[c]);
    return row_of_head;
  }
  template <typename T>
  __device__ void store_to(const Tensor& t, int64_t row, int64_t head, float scale) const {
    T* to = static_cast<T*>(t.data) + row * t.stride + head * kWidth;
    Floats<kWidth> scaled;
#pragma unroll
    for (int c = 0; c < kWidth; ++c) scaled.v[c] = scale * v[c];
    store(to, scaled);
  }
  __device__ float dot(const float* other) const {
    float sum = 0;
#pragma unroll
    for (int c = 0; c < kWidth; ++c) sum += v[c] * other[c];
    return sum;
  }
  __device__ void add(float factor, const float* other) {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) v[c] += factor * other[c];
  }
};

template <int kWidth>
struct alignas(16) KeyRow {
  float k[kWidth], v[kWidth];
};

// Rows [first, first + kTile) of the sequence's keys; zeros beyond.
template <typename T, int kWidth>
__device__ void fill(KeyRow<kWidth>* tile, const AttentionForward& op, const AttentionSpan& span, int first,
                     int64_t kv_head) {
  for (int at = threadIdx.x; at < kTile; at += kThreads) {
    HeadRow<kWidth> k, v;
    if (first + at < span.keys) {
      k = HeadRow<kWidth>::template load_from<T>(op.k, span.first_key + first + at, kv_head);
      v = HeadRow<kWidth>::template load_from<T>(op.v, span.first_key + first + at, kv_head);
    }
#pragma unroll
    for (int c = 0; c < kWidth; ++c) {
      tile[at].k[c] = k.v[c];
      tile[at].v[c] = v.v[c];
    }
  }
}

// What dropout makes of a chunk's weights, but for the factor that all which are kept have in common.
__device__ void drop(const Draws& draws, uint32_t row_key, int first_column, float (&weights)[kChunk]) {
#pragma unroll
  for (int i = 0; i < kChunk / 2; ++i) {
    const KeptPair kept = draws.kept(row_key, first_column + i);
    if (!kept.here) weights[i] = 0;
    if (!kept.further) weights[i + kChunk / 2] = 0;
  }
}

template <typename T, int kWidth, bool kDropout>
__global__ void __launch_bounds__(kThreads) forward_narrow_kernel(const AttentionForward op, const Draws draws) {
  const int64_t head = blockIdx.y;
  if (blockIdx.z == op.queries.sequences) {
    return clear_head_rows<T>(op.y, op.queries.starts[op.queries.sequences], head, kWidth);
  }
  const AttentionSpan span = attention_span(op, blockIdx.z);
  const int first = static_cast<int>(blockIdx.x) * kThreads, query = first + static_cast<int>(threadIdx.x);
  if (first >= span.queries) return;
  const bool exists = query < span.queries;
  const int64_t row = span.first_query + (exists ? query : 0), kv_head = kv_head_of(op.shape, blockIdx.y);
  __shared__ KeyRow<kWidth> tile[kTile];
  const HeadRow<kWidth> q = HeadRow<kWidth>::template load_from<T>(op.q, row, head);
  const uint32_t row_key = kDropout ? attention_row_key(draws, head, row) : 0;
  const int seen = exists ? span.seen_by(query, op.shape.causal) : 0;
  const int key_end = span.seen_by(min(first + kThreads, span.queries) - 1, op.shape.causal);
  const float scale = op.shape.scale * kLog2E;
  float largest = -INFINITY, sum = 0;
  HeadRow<kWidth> y;
  for (int key = 0; key < key_end; key += kTile) {
    __syncthreads();
    fill<T, kWidth>(tile, op, span, key, kv_head);
    __syncthreads();
    const int end = __reduce_max_sync(~0u, min(seen - key, kTile));  // the warp's
    for (int j = 0; j < end; j += kChunk) {
      float weights[kChunk], highest = largest;
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        weights[i] = key + j + i < seen ? q.dot(tile[j + i].k) * scale : -INFINITY;
        highest = fmaxf(highest, weights[i]);
      }
      const float from = highest == -INFINITY ? 0.0f : highest, shrink = exp2_fast(largest - from);
      largest = highest;
      sum *= shrink;
#pragma unroll
      for (int c = 0; c < kWidth; ++c) y.v[c] *= shrink;
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        weights[i] = exp2_fast(weights[i] - from);
        sum += weights[i];
      }
      if (kDropout) drop(draws, row_key, key + j, weights);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) y.add(weights[i], tile[j + i].v);
    }
  }
  if (!exists) return;
  y.template store_to<T>(op.y, row, head, sum > 0 ? draws.scale / sum : 0.0f);
  if (op.log_sum_exp.data != nullptr) {
    static_cast<float*>(op.log_sum_exp.data)[row * op.log_sum_exp.stride + head] =
        sum > 0 ? (largest + log2f(sum)) * kLn2 : -INFINITY;
  }
}

template <typename T, int kWidth, bool kDropout>
__global__ void __launch_bounds__(kThreads)
    backward_queries_narrow_kernel(const AttentionBackward op, const Draws draws) {
  const AttentionForward& forward = op.forward;
  const int64_t head = blockIdx.y;
  if (blockIdx.z == forward.queries.sequences) {
    return clear_head_rows<T>(op.dq, forward.queries.starts[forward.queries.sequences], head, kWidth);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const int first = static_cast<int>(blockIdx.x) * kThreads, query = first + static_cast<int>(threadIdx.x);
  if (first >= span.queries) return;
  const bool exists = query < span.queries, causal = forward.shape.causal;
  const int64_t row = span.first_query + (exists ? query : 0), kv_head = kv_head_of(forward.shape, blockIdx.y);
  __shared__ KeyRow<kWidth> tile[kTile];
  const HeadRow<kWidth> q = HeadRow<kWidth>::template load_from<T>(forward.q, row, head);
  const HeadRow<kWidth> dy = HeadRow<kWidth>::template load_from<T>(op.dy, row, head);
  const float product = dy.dot(HeadRow<kWidth>::template load_from<T>(forward.y, row, head).v);
  const float log_sum =
      static_cast<const float*>(forward.log_sum_exp.data)[row * forward.log_sum_exp.stride + head] * kLog2E;
  const uint32_t row_key = kDropout ? attention_row_key(draws, head, row) : 0;
  const int seen = exists ? span.seen_by(query, causal) : 0;
  const int key_end = span.seen_by(min(first + kThreads, span.queries) - 1, causal);
  const float scale = forward.shape.scale * kLog2E;
  HeadRow<kWidth> dq;
  for (int key = 0; key < key_end; key += kTile) {
    __syncthreads();
    fill<T, kWidth>(tile, forward, span, key, kv_head);
    __syncthreads();
    const int end = __reduce_max_sync(~0u, min(seen - key, kTile));
    for (int j = 0; j < end; j += kChunk) {
      float slopes[kChunk];
#pragma unroll
      for (int i = 0; i < kChunk; ++i) slopes[i] = dy.dot(tile[j + i].v) * draws.scale;
      if (kDropout) drop(draws, row_key, key + j, slopes);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        const float p = key + j + i < seen ? exp2_fast(q.dot(tile[j + i].k) * scale - log_sum) : 0.0f;
        dq.add(p * (slopes[i] - product), tile[j + i].k);
      }
    }
  }
  if (exists) dq.template store_to<T>(op.dq, row, head, forward.shape.scale);
}

template <int kWidth>
struct alignas(16) QueryRow {
  float q[kWidth], dy[kWidth];
  float log_sum, product;
  uint32_t row_key;
  int seen;
};

template <typename T, int kWidth, bool kDropout>
__global__ void __launch_bounds__(kThreads) backward_keys_narrow_kernel(const AttentionBackward op, const Draws draws) {
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int64_t kv_head = blockIdx.y, sequences = forward.queries.sequences;
  if (blockIdx.z == sequences) {
    const int64_t end = sequences > 0 ? forward.k_end[sequences - 1] : 0;
    clear_head_rows<T>(op.dk, end, kv_head, kWidth);
    return clear_head_rows<T>(op.dv, end, kv_head, kWidth);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const int first = static_cast<int>(blockIdx.x) * kThreads, key = first + static_cast<int>(threadIdx.x);
  if (first >= span.keys) return;
  const bool exists = key < span.keys;
  const int64_t key_row = span.first_key + (exists ? key : 0);
  __shared__ QueryRow<kWidth> tile[kTile];
  const HeadRow<kWidth> k = HeadRow<kWidth>::template load_from<T>(forward.k, key_row, kv_head);
  const HeadRow<kWidth> v = HeadRow<kWidth>::template load_from<T>(forward.v, key_row, kv_head);
  const float scale = shape.scale * kLog2E;
  const int first_of_warp = __reduce_min_sync(~0u, key), group = group_of(shape);
  HeadRow<kWidth> dk, dv;
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int query = span.first_seeing(first, shape.causal); query < span.queries; query += kTile) {
      __syncthreads();
      for (int at = threadIdx.x; at < kTile; at += kThreads) {
        QueryRow<kWidth>& to = tile[at];
        to.seen = 0;
        if (query + at >= span.queries) continue;
        const int64_t row = span.first_query + query + at;
        const HeadRow<kWidth> q = HeadRow<kWidth>::template load_from<T>(forward.q, row, head);
        const HeadRow<kWidth> dy = HeadRow<kWidth>::template load_from<T>(op.dy, row, head);
#pragma unroll
        for (int c = 0; c < kWidth; ++c) {
          to.q[c] = q.v[c];
          to.dy[c] = dy.v[c];
        }
        to.product = dy.dot(HeadRow<kWidth>::template load_from<T>(forward.y, row, head).v);
        to.log_sum =
            static_cast<const float*>(forward.log_sum_exp.data)[row * forward.log_sum_exp.stride + head] * kLog2E;
        to.row_key = kDropout ? attention_row_key(draws, head, row) : 0;
        to.seen = span.seen_by(query + at, shape.causal);
      }
      __syncthreads();
      const int begin = max(0, span.first_seeing(first_of_warp, shape.causal) - query);
      const int end = min(kTile, span.queries - query);
#pragma unroll 4
      for (int j = begin; j < end; ++j) {
        const QueryRow<kWidth>& other = tile[j];
        const float p = key < other.seen ? exp2_fast(k.dot(other.q) * scale - other.log_sum) : 0.0f;
        const float keep = kDropout ? draws.factor(other.row_key, key) : 1.0f;
        dv.add(p * keep, other.dy);
        dk.add(p * (keep * v.dot(other.dy) - other.product), other.q);
      }
    }
  }
  if (!exists) return;
  dk.template store_to<T>(op.dk, key_row, kv_head, shape.scale);
  dv.template store_to<T>(op.dv, key_row, kv_head, 1.0f);
}

template <int kWidth>
struct Width {
  static constexpr int value = kWidth;
};

// Body(type, width, whether there is dropout), all known when it is compiled.
template <typename Body>
void with_narrow_heads(const AttentionForward& op, const Body& body) {
  with_any_type(op.q.type, [&](auto type) {
    const auto with_width = [&](auto width) {
      if (op.dropout.active()) return body(type, width, std::true_type{});
      body(type, width, std::false_type{});
    };
    if (op.shape.head_width == 2) return with_width(Width<2>{});
    if (op.shape.head_width == 4) return with_width(Width<4>{});
    with_width(Width<8>{});
  });
}

Launch rows_of_a_head(int64_t longest, int64_t heads, int64_t sequences) {
  return {.blocks = std::max<int64_t>(1, divide_up(longest, int64_t{kThreads})),
          .blocks_y = heads,
          .blocks_z = sequences + 1,
          .threads = kThreads};
}

// A head's row is read at once.
bool is_whole_heads(const AttentionForward& op, const Tensor& t) {
  const int64_t width = op.shape.head_width, bytes = std::min<int64_t>(16, width * size_of(t.type));
  return t.type == op.q.type && reinterpret_cast<uintptr_t>(t.data) % static_cast<uintptr_t>(bytes) == 0 &&
         t.stride % width == 0;
}

}  // namespace

bool has_narrow_heads(const AttentionForward& op) {
  const int64_t width = op.shape.head_width;
  if (width != 2 && width != 4 && width != 8) return false;
  return is_whole_heads(op, op.q) && is_whole_heads(op, op.k) && is_whole_heads(op, op.v) && is_whole_heads(op, op.y);
}

bool has_narrow_heads(const AttentionBackward& op) {
  const AttentionForward& forward = op.forward;
  return has_narrow_heads(forward) && is_whole_heads(forward, op.dy) && is_whole_heads(forward, op.dq) &&
         is_whole_heads(forward, op.dk) && is_whole_heads(forward, op.dv);
}

void attention_forward_narrow(const AttentionForward& op) {
  const Draws draws = draws_of(op.dropout, op.queries);
  with_narrow_heads(op, [&](auto type, auto width, auto dropout) {
    launch(forward_narrow_kernel<decltype(type), decltype(width)::value, decltype(dropout)::value>,
           rows_of_a_head(op.queries.longest, op.shape.heads, op.queries.sequences), op, draws);
  });
}

void attention_backward_narrow(const AttentionBackward& op) {
  const AttentionForward& forward = op.forward;
  const int64_t sequences = forward.queries.sequences;
  const Draws draws = draws_of(forward.dropout, forward.queries);
  with_narrow_heads(forward, [&](auto type, auto width, auto dropout) {
    launch(backward_queries_narrow_kernel<decltype(type), decltype(width)::value, decltype(dropout)::value>,
           rows_of_a_head(forward.queries.longest, forward.shape.heads, sequences), op, draws);
    launch(backward_keys_narrow_kernel<decltype(type), decltype(width)::value, decltype(dropout)::value>,
           rows_of_a_head(forward.longest_keys, forward.shape.kv_heads, sequences), op, draws);
  });
}

}  // namespace brisk::cuda
