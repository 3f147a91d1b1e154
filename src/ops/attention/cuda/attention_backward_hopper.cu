// Attention backward by Hopper's matrix instructions in two kernels, bf16, heads at most 64 wide: as
// attention_backward_cuda.cu, with 64 queries (for dq) or 64 keys (for dk, dv) to a block of one warpgroup. Several
// blocks share a multiprocessor: the products of one are made while others weigh scores or wait for memory, which short
// sequences, too short for a pipeline of their own, need more than fewer products.
#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/attention/cuda/attention_backward_cuda.cuh"
#include "ops/attention/cuda/attention_hopper.cuh"

namespace brisk::cuda {

namespace {

constexpr int kRows = 64;  // of a tile, queries or keys
constexpr int kThreads = 128;
constexpr int64_t kTileBytes = SwizzledTile::bytes(kRows);

// What the kernel of keys knows of a query and head; zeros do no harm where there is none.
struct alignas(16) QueryFact {
  float log_sum;  // of base 2
  float product;  // dy.y
  uint32_t row_key;
};

// dq, and what is known of every query and head: facts [H, N].
template <bool kDropout>
__global__ void __launch_bounds__(kThreads, 4)
    backward_queries_hopper_kernel(const AttentionBackward op, const Draws draws, QueryFact* facts) {
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int64_t head = blockIdx.y;
  const int head_width = static_cast<int>(shape.head_width);
  if (blockIdx.z == forward.queries.sequences) {
    return clear_head_rows<bf16_t>(op.dq, forward.queries.starts[forward.queries.sequences], head, head_width);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kRows;
  if (first >= span.queries) return;
  const int queries = span.queries, keys = span.keys;
  const int64_t kv_head = kv_head_of(shape, blockIdx.y), first_row = span.first_query + first;
  const auto rows_of = [&](const Tensor& t, int64_t row, int64_t of_head) {
    return static_cast<bf16_t*>(t.data) + row * t.stride + of_head * head_width;
  };
  const bf16_t* k_rows = rows_of(forward.k, span.first_key, kv_head);
  const bf16_t* v_rows = rows_of(forward.v, span.first_key, kv_head);

  char* memory = swizzled_shared();
  const SwizzledTile q{memory}, dy{memory + kTileBytes};
  const auto buffer = [&](int which) { return SwizzledTile{memory + (2 + which) * kTileBytes}; };  // k, v, k, v
  const auto copy_tile = [&](int tile) {
    const int key = tile * kRows, which = tile % 2 * 2;
    buffer(which).template copy<kRows, kThreads>(k_rows + key * forward.k.stride, forward.k.stride, keys - key,
                                                 head_width);
    buffer(which + 1).template copy<kRows, kThreads>(v_rows + key * forward.v.stride, forward.v.stride, keys - key,
                                                     head_width);
    commit_copies();
  };
  const auto seen_by = [&](int query) { return span.seen_by(min(query, queries - 1), shape.causal); };
  const int tiles = (seen_by(first + kRows - 1) + kRows - 1) / kRows;
  q.copy<kRows, kThreads>(rows_of(forward.q, first_row, head), forward.q.stride, queries - first, head_width);
  dy.copy<kRows, kThreads>(rows_of(op.dy, first_row, head), op.dy.stride, queries - first, head_width);
  commit_copies();
  if (tiles > 0) copy_tile(0);

  // What is known of a query: two lanes have a row. y comes while the copies do.
  const int lane = threadIdx.x % 32, warp_first = static_cast<int>(threadIdx.x) / 32 * 16;
  const int known_row = warp_first + lane / 2;
  QueryFact known = {INFINITY, 0, 0};
  Floats<8> y[4] = {};
  if (first + known_row < queries) {
    const bf16_t* y_row = rows_of(forward.y, first_row + known_row, head) + lane % 2 * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (lane % 2 * 8 + i * 16 < head_width) y[i] = load<8>(y_row + i * 16);
    }
    known.log_sum = log_sum_of(forward, first_row + known_row, head);
    if (kDropout) known.row_key = attention_row_key(draws, head, first_row + known_row);
  }
  wait_for_copies<0>();
  publish_to_products();
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Floats<8> a = load<8>(static_cast<const bf16_t*>(dy.at(known_row, lane % 2 * 8 + i * 16)));
#pragma unroll
    for (int j = 0; j < 8; ++j) known.product += a.v[j] * y[i].v[j];
  }
  known.product += __shfl_xor_sync(~0u, known.product, 1);
  if (lane % 2 == 0 && first + known_row < queries) facts[head * forward.q.rows + first_row + known_row] = known;

  float log_sum[2], product[2];
  int seen[2];
  uint32_t row_key[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int from = (half * 8 + lane / 4) * 2;
    log_sum[half] = __shfl_sync(~0u, known.log_sum, from);
    product[half] = __shfl_sync(~0u, known.product, from);
    row_key[half] = kDropout ? __shfl_sync(~0u, known.row_key, from) : 0;
    seen[half] = seen_by(first + warp_first + half * 8 + lane / 4);
  }
  const int least_seen = seen_by(first + warp_first);
  const int most_seen = first + warp_first < queries ? seen_by(first + warp_first + 15) : 0;
  const float scale_log2 = shape.scale * kLog2E;
  float dq[1][8][4] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile > 0) {
      wait_for_copies<0>();
      publish_to_products();
      __syncthreads();
    }
    if (tile + 1 < tiles) copy_tile(tile + 1);
    const SwizzledTile k = buffer(tile % 2 * 2), v = buffer(tile % 2 * 2 + 1);
    const int key = tile * kRows;
    WarpgroupSums scores, slopes;
    order_products();
    row_products(scores, q, 0, k);
    end_products();
    row_products(slopes, dy, 0, v);
    end_products();
    wait_for_products<0>();
    hold(scores);
    hold(slopes);
    if (key + kRows > least_seen) {
#pragma unroll
      for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (key + n * 8 + lane % 4 * 2 + i % 2 >= seen[i / 2]) scores[n][i] = -INFINITY;
        }
      }
    }
    const int existing = most_seen - key;  // of the columns that the warp needs
    LeftOperands gradients;
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      if (step * 16 >= existing) {
#pragma unroll
        for (int i = 0; i < 4; ++i) gradients.v[step][i] = 0;
        continue;
      }
      [[maybe_unused]] KeptPair kept[4];
#pragma unroll
      for (int side = 0; side < 2; ++side) {  // eight columns each
        const int n = 2 * step + side;
        float gradient[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int half = i / 2, column = key + n * 8 + lane % 4 * 2 + i % 2;
          const float p = exp2_fast(scores[n][i] * scale_log2 - log_sum[half]);
          float slope = slopes[n][i];
          if constexpr (kDropout) {
            if (side == 0) kept[i] = draws.kept(row_key[half], column);
            slope = (side == 0 ? kept[i].here : kept[i].further) ? slope : 0.0f;
          }
          gradient[i] = p * (slope * draws.scale - product[half]);
        }
        gradients.v[step][2 * side] = pack_bf16(gradient[0], gradient[1]);
        gradients.v[step][2 * side + 1] = pack_bf16(gradient[2], gradient[3]);
      }
    }
    order_products();
    add_weighted_rows(dq[0], gradients, k);
    end_products();
    wait_for_products<0>();
    hold(dq[0]);
  }
  __syncthreads();  // nobody multiplies with q any more
  store_rows<64, 1>(dq, shape.scale, q, warp_first, rows_of(op.dq, first_row, head), op.dq.stride, queries - first,
                    head_width);
}

// dk and dv, over all query heads that share the key head.
template <bool kDropout>
__global__ void __launch_bounds__(kThreads, 3)
    backward_keys_hopper_kernel(const AttentionBackward op, const Draws draws, const QueryFact* facts) {
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int kv_head = static_cast<int>(blockIdx.y);
  const int64_t sequences = forward.queries.sequences;
  const int head_width = static_cast<int>(shape.head_width);
  if (blockIdx.z == sequences) {
    const int64_t end = sequences > 0 ? forward.k_end[sequences - 1] : 0;
    clear_head_rows<bf16_t>(op.dk, end, kv_head, head_width);
    return clear_head_rows<bf16_t>(op.dv, end, kv_head, head_width);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const int first = static_cast<int>(blockIdx.x) * kRows;  // the first keys are seen by most queries: they begin
  if (first >= span.keys) return;
  const int queries = span.queries, keys = span.keys;
  const int group = group_of(shape);
  const int64_t first_row = span.first_key + first;
  const auto rows_of = [&](const Tensor& t, int64_t row, int64_t of_head) {
    return static_cast<bf16_t*>(t.data) + row * t.stride + of_head * head_width;
  };

  char* memory = swizzled_shared();
  const SwizzledTile k{memory}, v{memory + kTileBytes};
  const auto buffer = [&](int which) { return SwizzledTile{memory + (2 + which) * kTileBytes}; };  // q, dy, q, dy
  auto* known = reinterpret_cast<QueryFact*>(memory + 6 * kTileBytes);                             // of two tiles

  // The tiles of queries that see any of these keys, of one head after the other; `next` is the one to be copied.
  const int first_seeing = span.first_seeing(first, shape.causal) / kRows * kRows;
  struct {
    int query, head, which = 0;
  } next = {first_seeing, kv_head * group};
  const int rounds = max(0, (queries - first_seeing + kRows - 1) / kRows) * group;
  const auto copy_next = [&] {
    const int64_t row = span.first_query + next.query;
    const int left = queries - next.query;
    buffer(2 * next.which)
        .template copy<kRows, kThreads>(rows_of(forward.q, row, next.head), forward.q.stride, left, head_width);
    buffer(2 * next.which + 1)
        .template copy<kRows, kThreads>(rows_of(op.dy, row, next.head), op.dy.stride, left, head_width);
    if (threadIdx.x < kRows) {
      const int at = static_cast<int>(threadIdx.x);
      copy_async(&known[next.which * kRows + at], facts + next.head * forward.q.rows + row + at, at < left);
    }
    commit_copies();
    next.which ^= 1;
    next.query += kRows;
    if (next.query >= queries) {
      next.query = first_seeing;
      ++next.head;
    }
  };
  k.copy<kRows, kThreads>(rows_of(forward.k, first_row, kv_head), forward.k.stride, keys - first, head_width);
  v.copy<kRows, kThreads>(rows_of(forward.v, first_row, kv_head), forward.v.stride, keys - first, head_width);
  commit_copies();
  if (rounds > 0) copy_next();

  const int lane = threadIdx.x % 32, warp_first = static_cast<int>(threadIdx.x) / 32 * 16;
  const int key = first + warp_first + lane / 4;
  const bool has_keys = first + warp_first < keys;         // the warp
  const int ahead = shape.causal ? keys - queries : keys;  // query i sees keys up to i + ahead
  const float scale_log2 = shape.scale * kLog2E;
  float dk[1][8][4] = {}, dv[1][8][4] = {};
  int query = first_seeing;
  for (int round = 0; round < rounds; ++round) {
    wait_for_copies<0>();
    publish_to_products();
    __syncthreads();
    if (round + 1 < rounds) copy_next();
    const SwizzledTile q = buffer(round % 2 * 2), dy = buffer(round % 2 * 2 + 1);
    const QueryFact* of_tile = known + round % 2 * kRows + lane % 4 * 2;
    const int existing = has_keys ? queries - query : 0;
    WarpgroupSums scores, slopes;
    order_products();
    row_products(scores, k, 0, q);
    end_products();
    row_products(slopes, v, 0, dy);
    end_products();
    wait_for_products<0>();
    hold(scores);
    hold(slopes);
    // Keys beyond the last have weights of their own, which are not stored.
    if (query + ahead < first + warp_first + 15) {
#pragma unroll
      for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (key + i / 2 * 8 > query + n * 8 + lane % 4 * 2 + i % 2 + ahead) scores[n][i] = -INFINITY;
        }
      }
    }
    LeftOperands weights, gradients;
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      if (step * 16 >= existing) {
#pragma unroll
        for (int i = 0; i < 4; ++i) weights.v[step][i] = gradients.v[step][i] = 0;
        continue;
      }
#pragma unroll
      for (int side = 0; side < 2; ++side) {  // eight columns each
        const int n = 2 * step + side;
        float weight[4], gradient[4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const QueryFact fact = of_tile[n * 8 + i];
          [[maybe_unused]] KeptPair kept;
          if constexpr (kDropout) kept = draws.kept(fact.row_key, key);
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const float p = exp2_fast(scores[n][2 * half + i] * scale_log2 - fact.log_sum);
            float slope = slopes[n][2 * half + i];
            weight[2 * half + i] = p;
            if constexpr (kDropout) {  // what is kept is scaled when dv is stored
              const bool is_kept = half == 0 ? kept.here : kept.further;
              weight[2 * half + i] = is_kept ? p : 0.0f;
              slope = is_kept ? slope : 0.0f;
            }
            gradient[2 * half + i] = p * (slope * draws.scale - fact.product);
          }
        }
        weights.v[step][2 * side] = pack_bf16(weight[0], weight[1]);
        weights.v[step][2 * side + 1] = pack_bf16(weight[2], weight[3]);
        gradients.v[step][2 * side] = pack_bf16(gradient[0], gradient[1]);
        gradients.v[step][2 * side + 1] = pack_bf16(gradient[2], gradient[3]);
      }
    }
    order_products();
    add_weighted_rows(dv[0], weights, dy);
    add_weighted_rows(dk[0], gradients, q);
    end_products();
    wait_for_products<0>();
    hold(dv[0]);
    hold(dk[0]);
    query = query + kRows < queries ? query + kRows : first_seeing;
  }
  wait_for_copies<0>();
  __syncthreads();
  store_rows<64, 1>(dk, shape.scale, k, warp_first, rows_of(op.dk, first_row, kv_head), op.dk.stride, keys - first,
                    head_width);
  store_rows<64, 1>(dv, draws.scale, v, warp_first, rows_of(op.dv, first_row, kv_head), op.dv.stride, keys - first,
                    head_width);
}

template <bool kDropout>
void launch_backward(const AttentionBackward& op, const Draws& draws) {
  const AttentionForward& forward = op.forward;
  const int64_t pairs = std::max<int64_t>(1, forward.q.rows * forward.shape.heads);
  auto* facts = static_cast<QueryFact*>(workspace(pairs * static_cast<int64_t>(sizeof(QueryFact))));
  Launch shape{.blocks = std::max<int64_t>(1, divide_up(forward.queries.longest, kRows)),
               .blocks_y = forward.shape.heads,
               .blocks_z = forward.queries.sequences + 1,
               .threads = kThreads,
               .shared_bytes = 1023 + 6 * kTileBytes};
  launch(backward_queries_hopper_kernel<kDropout>, shape, op, draws, facts);
  shape.blocks = std::max<int64_t>(1, divide_up(forward.longest_keys, kRows));
  shape.blocks_y = forward.shape.kv_heads;
  shape.shared_bytes += 2 * kRows * static_cast<int64_t>(sizeof(QueryFact));
  launch(backward_keys_hopper_kernel<kDropout>, shape, op, draws, static_cast<const QueryFact*>(facts));
}

}  // namespace

bool attention_backward_hopper(const AttentionBackward& op) {
  if (op.forward.shape.head_width > 64 || !is_hopper()) return false;
  const Draws draws = draws_of(op.forward.dropout, op.forward.queries);
  if (draws.threshold > 0) {
    launch_backward<true>(op, draws);
  } else {
    launch_backward<false>(op, draws);
  }
  return true;
}

}  // namespace brisk::cuda
