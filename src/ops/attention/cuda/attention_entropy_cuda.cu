// Attention that also tells the entropy of each row's weights, averaged over the heads: f32 throughout. A warp has a query (or a
// key): some lanes are its heads, so that the mean over the heads is a sum over lanes, and the others do the same for other
// keys (or queries). The block goes over tiles of those in shared memory.
#include <algorithm>

#include "base/rounding.h"
#include "ops/attention/cuda/attention_cuda.cuh"
#include "ops/attention/cuda/attention_entropy_cuda.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kTileFloats = 2048;  // of each of the two matrices of a tile
constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;

template <int kWidth>
struct HeadRow {
  float v[kWidth] = {};
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

// Which head a lane has, and which of the rows of a tile: every so many, from its own on.
struct Lanes {
  int heads, head, splits, split;
  __device__ explicit Lanes(int64_t all_heads)
      : heads(static_cast<int>(all_heads)),
        head(static_cast<int>(threadIdx.x % 32) % heads),
        splits(32 / heads),
        split(static_cast<int>(threadIdx.x % 32) / heads) {}
  __device__ float sum_over_heads(float value) const {
    for (int distance = heads / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
    return value;
  }
  __device__ float sum_over_splits(float value) const {
    for (int distance = 16; distance >= heads; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
    return value;
  }
  __device__ float max_over_splits(float value) const {
    for (int distance = 16; distance >= heads; distance /= 2)
      value = fmaxf(value, __shfl_xor_sync(~0u, value, distance));
    return value;
  }
  template <int kWidth>
  __device__ void sum_over_splits(HeadRow<kWidth>& row) const {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) row.v[c] = sum_over_splits(row.v[c]);
  }
};

__host__ __device__ constexpr int rows_of_tile(int heads, int width) {
  return kTileFloats / (heads * width) < 64 ? kTileFloats / (heads * width) : 64;
}

// Some rows of two matrices. The pieces of a head's row lie apart, so that the lanes of all heads read neighbours.
template <int kWidth>
class Tile {
 public:
  __device__ Tile(float* memory, int heads) : memory_(memory), heads_(heads), rows_(rows_of_tile(heads, kWidth)) {}
  __device__ int rows() const { return rows_; }
  // Rows [begin, begin + rows()) of both, zeros from `count` on.
  __device__ void fill(const Tensor& a, const Tensor& b, int64_t begin, int count) const {
    const int cols = heads_ * kWidth;
    for (int at = threadIdx.x; at < rows_ * cols; at += kThreads) {
      const int row = at / cols, column = at % cols;
      const int to = place(row, column / kWidth, column % kWidth / kPiece) + column % kPiece;
      const bool exists = row < count;
      memory_[to] = exists ? load_any<1>(a, (begin + row) * a.stride + column).v[0] : 0.0f;
      memory_[kTileFloats + to] = exists ? load_any<1>(b, (begin + row) * b.stride + column).v[0] : 0.0f;
    }
  }
  __device__ HeadRow<kWidth> first(int row, int head) const { return at(memory_, row, head); }
  __device__ HeadRow<kWidth> second(int row, int head) const { return at(memory_ + kTileFloats, row, head); }

 private:
  static constexpr int kPiece = kWidth < 4 ? kWidth : 4;
  struct alignas(4 * kPiece) Piece {
    float v[kPiece];
  };
  __device__ int place(int row, int head, int piece) const {
    return row * heads_ * kWidth + piece * heads_ * kPiece + head * kPiece;
  }
  __device__ HeadRow<kWidth> at(const float* memory, int row, int head) const {
    HeadRow<kWidth> values;
#pragma unroll
    for (int piece = 0; piece < kWidth / kPiece; ++piece) {
      const Piece part = *reinterpret_cast<const Piece*>(memory + place(row, head, piece));
#pragma unroll
      for (int c = 0; c < kPiece; ++c) values.v[piece * kPiece + c] = part.v[c];
    }
    return values;
  }

  float* memory_;
  int heads_, rows_;
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
  return -dentropy / static_cast<float>(heads) * (__logf(shifted) + __fdividef(weight, shifted));
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads) entropy_forward_kernel(const AttentionForward op, const Draws draws) {
  __shared__ __align__(16) float memory[2 * kTileFloats];
  if (blockIdx.z == op.queries.sequences) {
    const int64_t end = op.queries.starts[op.queries.sequences];
    clear_rows_from(op.y, end);
    return clear_rows_from(op.entropy, end);
  }
  const AttentionSpan span = attention_span(op, blockIdx.z);
  const Lanes lanes(op.shape.heads);
  const int first = static_cast<int>(blockIdx.x) * kWarps, query = first + static_cast<int>(threadIdx.x) / 32;
  if (first >= span.queries) return;
  const bool exists = query < span.queries;
  const int64_t row = span.first_query + (exists ? query : 0);
  const int seen = exists ? span.seen_by(query, op.shape.causal) : 0;
  const int key_end = span.seen_by(min(first + kWarps, span.queries) - 1, op.shape.causal);
  const uint32_t row_key = attention_row_key(draws, lanes.head, row);
  const Tile<kWidth> tile(memory, lanes.heads);
  const float scale = op.shape.scale * kLog2E;
  HeadRow<kWidth> q, y;
  q.load_from(op.q, row, lanes.head);
  float largest = -INFINITY, sum = 0;
  for (int key = 0; key < key_end; key += tile.rows()) {
    __syncthreads();
    tile.fill(op.k, op.v, span.first_key + key, span.keys - key);
    __syncthreads();
    const int end = min(seen - key, tile.rows());
    float highest = largest;
#pragma unroll 4
    for (int j = lanes.split; j < end; j += lanes.splits)
      highest = fmaxf(highest, q.dot(tile.first(j, lanes.head)) * scale);
    const float from = highest == -INFINITY ? 0.0f : highest, shrink = exp2_fast(largest - from);
    largest = highest;
    sum *= shrink;
#pragma unroll
    for (int c = 0; c < kWidth; ++c) y.v[c] *= shrink;
#pragma unroll 4
    for (int j = lanes.split; j < end; j += lanes.splits) {
      const float power = exp2_fast(q.dot(tile.first(j, lanes.head)) * scale - from);
      sum += power;
      y.add(power * draws.factor(row_key, key + j), tile.second(j, lanes.head));
    }
  }
  // What the splits have seen, as one.
  const float highest = lanes.max_over_splits(largest), from = highest == -INFINITY ? 0.0f : highest;
  const float shrink = exp2_fast(largest - from);
#pragma unroll
  for (int c = 0; c < kWidth; ++c) y.v[c] *= shrink;
  lanes.sum_over_splits(y);
  sum = lanes.sum_over_splits(sum * shrink);
  const float inverse = sum > 0 ? 1.0f / sum : 0.0f, log_sum = from + (sum > 0 ? log2f(sum) : 0.0f);
  float entropy = 0;
  for (int key = 0; key < key_end; key += tile.rows()) {
    if (key_end > tile.rows()) {  // otherwise the only tile is still there
      __syncthreads();
      tile.fill(op.k, op.v, span.first_key + key, span.keys - key);
      __syncthreads();
    }
    const int end = min(seen - key, tile.rows());
#pragma unroll 4
    for (int j = 0; j < end; j += lanes.splits) {  // all of the warp's lanes, which add up their heads
      float kept = 0;
      if (j + lanes.split < end) {
        kept = exp2_fast(q.dot(tile.first(j + lanes.split, lanes.head)) * scale - log_sum) *
               draws.factor(row_key, key + j + lanes.split);
      }
      const float weight = lanes.sum_over_heads(kept) / static_cast<float>(lanes.heads);
      entropy -= weight * __logf(weight + kEntropyEpsilon);
    }
  }
  entropy = lanes.sum_over_splits(entropy);
  if (!exists || lanes.split > 0) return;
  y.store_to(op.y, row, lanes.head, inverse);
  if (op.log_sum_exp) {
    op.log_sum_exp.f32()[row * op.log_sum_exp.stride + lanes.head] = sum > 0 ? log_sum * kLn2 : -INFINITY;
  }
  if (lanes.head == 0) op.entropy.f32()[row * op.entropy.stride] = entropy;
}

// dq, and what is subtracted from every slope of a query and head into products [Nq, H].
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    entropy_backward_queries_kernel(const AttentionBackward op, const Draws draws, float* products) {
  __shared__ __align__(16) float memory[2 * kTileFloats];
  const AttentionForward& forward = op.forward;
  if (blockIdx.z == forward.queries.sequences) {
    return clear_rows_from(op.dq, forward.queries.starts[forward.queries.sequences]);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const AttentionShape& shape = forward.shape;
  const Lanes lanes(shape.heads);
  const int first = static_cast<int>(blockIdx.x) * kWarps, query = first + static_cast<int>(threadIdx.x) / 32;
  if (first >= span.queries) return;
  const bool exists = query < span.queries;
  const int64_t row = span.first_query + (exists ? query : 0);
  const int seen = exists ? span.seen_by(query, shape.causal) : 0;
  const int key_end = span.seen_by(min(first + kWarps, span.queries) - 1, shape.causal);
  const uint32_t row_key = attention_row_key(draws, lanes.head, row);
  const float dentropy = op.dentropy.f32()[row * op.dentropy.stride];
  const float log_sum = forward.log_sum_exp.f32()[row * forward.log_sum_exp.stride + lanes.head] * kLog2E;
  const Tile<kWidth> tile(memory, lanes.heads);
  const float scale = shape.scale * kLog2E;
  HeadRow<kWidth> q, dy, y;
  q.load_from(forward.q, row, lanes.head);
  dy.load_from(op.dy, row, lanes.head);
  y.load_from(forward.y, row, lanes.head);
  // dq is the sum of (what each key's slope was - their mean, the product) times p k: both sums at once.
  float product = 0;
  HeadRow<kWidth> sloped, mean;
  for (int key = 0; key < key_end; key += tile.rows()) {
    __syncthreads();
    tile.fill(forward.k, forward.v, span.first_key + key, span.keys - key);
    __syncthreads();
    const int end = min(seen - key, tile.rows());
#pragma unroll 2
    for (int j = 0; j < end; j += lanes.splits) {
      const int own = min(j + lanes.split, tile.rows() - 1);
      const HeadRow<kWidth> k = tile.first(own, lanes.head);
      const float p = j + lanes.split < end ? exp2_fast(q.dot(k) * scale - log_sum) : 0.0f;
      const float kept = p * draws.factor(row_key, key + own);
      const float weight = lanes.sum_over_heads(kept) / static_cast<float>(lanes.heads);
      const float slope = kept * entropy_slope(weight, dentropy, lanes.heads);
      product += slope;
      sloped.add(slope + kept * dy.dot(tile.second(own, lanes.head)), k);
      mean.add(p, k);
    }
  }
  product = lanes.sum_over_splits(product) + dy.dot(y);
  lanes.sum_over_splits(sloped);
  lanes.sum_over_splits(mean);
  if (!exists || lanes.split > 0) return;
  sloped.add(-product, mean);
  sloped.store_to(op.dq, row, lanes.head, shape.scale);
  products[row * lanes.heads + lanes.head] = product;
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    entropy_backward_keys_kernel(const AttentionBackward op, const Draws draws, const float* products) {
  constexpr int kFacts = kTileFloats / kWidth;  // a query and head each
  __shared__ __align__(16) float memory[2 * kTileFloats];
  __shared__ float log_sums[kFacts], subtracted[kFacts], dentropies[64];
  __shared__ uint32_t row_keys[kFacts];
  const AttentionForward& forward = op.forward;
  const int64_t sequences = forward.queries.sequences;
  if (blockIdx.z == sequences) {
    const int64_t end = sequences > 0 ? forward.k_end[sequences - 1] : 0;
    clear_rows_from(op.dk, end);
    return clear_rows_from(op.dv, end);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const AttentionShape& shape = forward.shape;
  const Lanes lanes(shape.heads);
  const int first = static_cast<int>(blockIdx.x) * kWarps, key = first + static_cast<int>(threadIdx.x) / 32;
  if (first >= span.keys) return;
  const bool exists = key < span.keys;
  const int64_t key_row = span.first_key + (exists ? key : 0);
  const Tile<kWidth> tile(memory, lanes.heads);
  const float scale = shape.scale * kLog2E;
  HeadRow<kWidth> k, v, dk, dv;
  k.load_from(forward.k, key_row, lanes.head);
  v.load_from(forward.v, key_row, lanes.head);
  const int first_seeing = exists ? span.first_seeing(key, shape.causal) : span.queries;
  for (int query = span.first_seeing(first, shape.causal); query < span.queries; query += tile.rows()) {
    __syncthreads();
    const int count = min(tile.rows(), span.queries - query);
    tile.fill(forward.q, op.dy, span.first_query + query, count);
    for (int at = threadIdx.x; at < count * lanes.heads; at += kThreads) {
      const int64_t row = span.first_query + query + at / lanes.heads, head = at % lanes.heads;
      log_sums[at] = forward.log_sum_exp.f32()[row * forward.log_sum_exp.stride + head] * kLog2E;
      subtracted[at] = products[row * lanes.heads + head];
      row_keys[at] = attention_row_key(draws, head, row);
      if (head == 0) dentropies[at / lanes.heads] = op.dentropy.f32()[row * op.dentropy.stride];
    }
    __syncthreads();
#pragma unroll 2
    for (int j = max(0, first_seeing - query); j < count; j += lanes.splits) {
      const int own = min(j + lanes.split, count - 1), fact = own * lanes.heads + lanes.head;
      const HeadRow<kWidth> q = tile.first(own, lanes.head), dy = tile.second(own, lanes.head);
      const float p = j + lanes.split < count ? exp2_fast(q.dot(k) * scale - log_sums[fact]) : 0.0f;
      const float kept = p * draws.factor(row_keys[fact], key);
      const float weight = lanes.sum_over_heads(kept) / static_cast<float>(lanes.heads);
      const float slope = entropy_slope(weight, dentropies[own], lanes.heads);
      dk.add(kept * (dy.dot(v) + slope) - p * subtracted[fact], q);
      dv.add(kept, dy);
    }
  }
  lanes.sum_over_splits(dk);
  lanes.sum_over_splits(dv);
  if (!exists || lanes.split > 0) return;
  dk.store_to(op.dk, key_row, lanes.head, shape.scale);
  dv.store_to(op.dv, key_row, lanes.head, 1.0f);
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

Launch warps_of_rows(int64_t longest, int64_t sequences) {
  return {.blocks = std::max<int64_t>(1, divide_up(longest, int64_t{kWarps})),
          .blocks_z = sequences + 1,
          .threads = kThreads};
}

}  // namespace

void attention_forward_with_entropy(const AttentionForward& op) {
  with_head_width(op.shape, [&](auto width) {
    launch(entropy_forward_kernel<decltype(width)::width>, warps_of_rows(op.queries.longest, op.queries.sequences), op,
           draws_of(op.dropout, op.queries));
  });
}

void attention_backward_with_entropy(const AttentionBackward& op) {
  const AttentionForward& forward = op.forward;
  const Draws draws = draws_of(forward.dropout, forward.queries);
  auto* products = static_cast<float*>(workspace(std::max<int64_t>(1, forward.q.rows) * forward.shape.heads * 4));
  with_head_width(forward.shape, [&](auto width) {
    const int64_t sequences = forward.queries.sequences;
    launch(entropy_backward_queries_kernel<decltype(width)::width>, warps_of_rows(forward.queries.longest, sequences),
           op, draws, products);
    launch(entropy_backward_keys_kernel<decltype(width)::width>, warps_of_rows(forward.longest_keys, sequences), op,
           draws, static_cast<const float*>(products));
  });
}

}  // namespace brisk::cuda
