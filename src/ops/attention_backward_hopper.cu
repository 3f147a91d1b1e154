// Attention backward by Hopper's matrix instructions, bf16, heads at most 64 wide: as attention_backward_cuda.cu, in
// two kernels that each write what they own. A warpgroup has 64 queries (dq) or keys (dk, dv); tiles of 64 of the other
// side come one after the other. Several blocks on a multiprocessor take turns at multiplying and at what is between.
#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/attention_backward_cuda.cuh"
#include "ops/attention_hopper.cuh"

namespace brisk::cuda {

namespace {

constexpr int kTile = 64;

// dq; and dy.y of every query and head into dy_y [Nq, H].
template <int kGroups, bool kDropout>
__global__ void __launch_bounds__(128 * kGroups, kGroups == 1 ? 3 : 1)
    backward_queries_hopper_kernel(const AttentionBackward op, const Draws draws, float* dy_y) {
  constexpr int kQueries = 64 * kGroups;  // of the block
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int64_t head = blockIdx.y, head_width = shape.head_width;
  if (blockIdx.z == forward.queries.sequences) {
    return clear_head_rows<bf16_t>(op.dq, forward.queries.starts[forward.queries.sequences], head, head_width);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;
  if (first >= span.queries) return;
  const int queries = static_cast<int>(span.queries), keys = static_cast<int>(span.keys);
  const int64_t kv_head = head / (shape.heads / shape.kv_heads), first_row = span.first_query + first;
  const auto rows_of = [&](const Tensor& t, int64_t row, int64_t of_head) {
    return static_cast<bf16_t*>(t.data) + row * t.stride + of_head * head_width;
  };
  const bf16_t *k_rows = rows_of(forward.k, span.first_key, kv_head),
               *v_rows = rows_of(forward.v, span.first_key, kv_head);

  char* memory = swizzled_shared();
  const SwizzledTile q{memory}, dy{memory + SwizzledTile::bytes(kQueries)};
  const auto buffer = [&](int which) {  // k, v, k, v
    return SwizzledTile{memory + 2 * SwizzledTile::bytes(kQueries) + which * SwizzledTile::bytes(kTile)};
  };
  const auto copy_tile = [&](int tile) {
    const int key = tile * kTile, which = tile % 2 * 2;
    buffer(which).template copy<kTile>(k_rows + key * forward.k.stride, forward.k.stride, keys - key,
                                       static_cast<int>(head_width));
    buffer(which + 1).template copy<kTile>(v_rows + key * forward.v.stride, forward.v.stride, keys - key,
                                           static_cast<int>(head_width));
    commit_copies();
  };
  const auto seen_by = [&](int query) { return static_cast<int>(span.seen_by(min(query, queries - 1), shape.causal)); };
  const int tiles = (seen_by(first + kQueries - 1) + kTile - 1) / kTile;
  q.copy<kQueries>(rows_of(forward.q, first_row, head), forward.q.stride, queries - first,
                   static_cast<int>(head_width));
  dy.copy<kQueries>(rows_of(op.dy, first_row, head), op.dy.stride, queries - first, static_cast<int>(head_width));
  commit_copies();
  if (tiles > 0) copy_tile(0);
  wait_for_copies<0>();
  publish_to_products();
  __syncthreads();

  const int lane = threadIdx.x % 32, warp_first = threadIdx.x / 32 * 16, group_first = threadIdx.x / 128 * 64;
  const float both = row_product(dy, warp_first, rows_of(forward.y, first_row, head), forward.y.stride, queries - first,
                                 static_cast<int>(head_width));
  if (lane % 2 == 0 && first + warp_first + lane / 2 < queries) {
    dy_y[(first_row + warp_first + lane / 2) * shape.heads + head] = both;
  }
  float log_sum[2], product[2];
  int seen[2];
  uint32_t row_key[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    product[half] = __shfl_sync(~0u, both, (half * 8 + lane / 4) * 2);
    const int query = first + warp_first + half * 8 + lane / 4;
    const int64_t at = span.first_query + query;
    const bool exists = query < queries;
    seen[half] = seen_by(query);
    row_key[half] = kDropout && exists ? attention_row_key(draws, head, at) : 0;
    log_sum[half] =
        exists ? static_cast<const float*>(forward.log_sum_exp.data)[at * forward.log_sum_exp.stride + head] * kLog2E
               : INFINITY;
  }
  const int least_seen = seen_by(first + group_first);
  const int most_seen = first + group_first < queries ? seen_by(first + group_first + 63) : 0;
  const float scale_log2 = shape.scale * kLog2E;
  float dq[1][8][4] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile > 0) {
      wait_for_copies<0>();
      publish_to_products();
      __syncthreads();
    }
    if (tile + 1 < tiles) copy_tile(tile + 1);
    const int first_key = tile * kTile;
    if (first_key >= most_seen) continue;  // the whole warpgroup
    const SwizzledTile k = buffer(tile % 2 * 2), v = buffer(tile % 2 * 2 + 1);
    WarpgroupSums scores, slopes;
    order_products();
    row_products(scores, q, group_first, k);
    end_products();
    row_products(slopes, dy, group_first, v);
    end_products();
    wait_for_products<1>();
    hold(scores);
    const bool masked = first_key + kTile > least_seen;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = first_key + n * 8 + lane % 4 * 2 + i % 2;
        scores[n][i] = exp2_fast(scores[n][i] * scale_log2 - log_sum[i / 2]);
        if (masked && column >= seen[i / 2]) scores[n][i] = 0;
      }
    }
    wait_for_products<0>();
    hold(slopes);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = first_key + n * 8 + lane % 4 * 2 + i % 2;
        float slope = slopes[n][i];
        if constexpr (kDropout) slope *= draws.factor(row_key[i / 2], column);
        slopes[n][i] = scores[n][i] * (slope - product[i / 2]);
      }
    }
    const LeftOperands left = rounded(slopes);
    order_products();
    add_weighted_rows(dq[0], left, k);
    end_products();
    wait_for_products<0>();
    hold(dq[0]);
  }
  store_rows<64, 1>(dq, shape.scale, q, warp_first, rows_of(op.dq, first_row, head), op.dq.stride, queries - first,
                    static_cast<int>(head_width));
}

// dk and dv, over all query heads that share the key head.
template <int kGroups, bool kDropout>
__global__ void __launch_bounds__(128 * kGroups, kGroups == 1 ? 2 : 1)
    backward_keys_hopper_kernel(const AttentionBackward op, const Draws draws, const float* dy_y) {
  constexpr int kKeys = 64 * kGroups;  // of the block
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int64_t kv_head = blockIdx.y, head_width = shape.head_width, sequences = forward.queries.sequences;
  if (blockIdx.z == sequences) {
    const int64_t end = sequences > 0 ? forward.k_end[sequences - 1] : 0;
    clear_head_rows<bf16_t>(op.dk, end, kv_head, head_width);
    return clear_head_rows<bf16_t>(op.dv, end, kv_head, head_width);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const int first = static_cast<int>(blockIdx.x) * kKeys;
  if (first >= span.keys) return;
  const int queries = static_cast<int>(span.queries), keys = static_cast<int>(span.keys);
  const int64_t group = shape.heads / shape.kv_heads, first_row = span.first_key + first;
  const auto rows_of = [&](const Tensor& t, int64_t row, int64_t of_head) {
    return static_cast<bf16_t*>(t.data) + row * t.stride + of_head * head_width;
  };

  char* memory = swizzled_shared();
  const SwizzledTile k{memory}, v{memory + SwizzledTile::bytes(kKeys)};
  const auto buffer = [&](int which) {  // q, dy, q, dy
    return SwizzledTile{memory + 2 * SwizzledTile::bytes(kKeys) + which * SwizzledTile::bytes(kTile)};
  };
  using Facts = QueryFacts<kTile>;
  auto* facts = reinterpret_cast<Facts*>(memory + 2 * SwizzledTile::bytes(kKeys) + 4 * SwizzledTile::bytes(kTile));

  // The tiles of queries that see any of these keys, of one head after the other.
  const int first_tile = static_cast<int>(span.first_seeing(first, shape.causal)) / kTile;
  const int tiles_of_head = max(0, (queries + kTile - 1) / kTile - first_tile);
  const int rounds = tiles_of_head * static_cast<int>(group);
  const auto copy_round = [&](int round) {
    const int64_t head = kv_head * group + round / tiles_of_head;
    const int query = (first_tile + round % tiles_of_head) * kTile, which = round % 2;
    const int64_t row = span.first_query + query;
    buffer(2 * which).template copy<kTile>(rows_of(forward.q, row, head), forward.q.stride, queries - query,
                                           static_cast<int>(head_width));
    buffer(2 * which + 1)
        .template copy<kTile>(rows_of(op.dy, row, head), op.dy.stride, queries - query, static_cast<int>(head_width));
    commit_copies();
    if (threadIdx.x < kTile) {
      const int at = threadIdx.x;
      const bool exists = query + at < queries;
      facts[which].log_sum[at] =
          exists ? static_cast<const float*>(forward.log_sum_exp.data)[(row + at) * forward.log_sum_exp.stride + head] *
                       kLog2E
                 : INFINITY;
      facts[which].product[at] = exists ? dy_y[(row + at) * shape.heads + head] : 0.0f;
      if (kDropout) facts[which].row_key[at] = exists ? attention_row_key(draws, head, row + at) : 0;
    }
  };
  k.copy<kKeys>(rows_of(forward.k, first_row, kv_head), forward.k.stride, keys - first, static_cast<int>(head_width));
  v.copy<kKeys>(rows_of(forward.v, first_row, kv_head), forward.v.stride, keys - first, static_cast<int>(head_width));
  commit_copies();
  if (rounds > 0) copy_round(0);

  const int lane = threadIdx.x % 32, warp_first = threadIdx.x / 32 * 16, group_first = threadIdx.x / 128 * 64;
  const int ahead = shape.causal ? keys - queries : keys;  // query i sees keys up to i + ahead
  const float scale_log2 = shape.scale * kLog2E;
  float dk[1][8][4] = {}, dv[1][8][4] = {};
  for (int round = 0; round < rounds; ++round) {
    wait_for_copies<0>();
    publish_to_products();
    __syncthreads();
    if (round + 1 < rounds) copy_round(round + 1);
    const int query = (first_tile + round % tiles_of_head) * kTile;
    if (query + kTile - 1 + ahead < first + group_first) continue;  // none of them sees any of the warpgroup's keys
    const SwizzledTile q = buffer(round % 2 * 2), dy = buffer(round % 2 * 2 + 1);
    WarpgroupSums scores, slopes;
    order_products();
    row_products(scores, k, group_first, q);
    end_products();
    row_products(slopes, v, group_first, dy);
    end_products();
    wait_for_products<1>();
    hold(scores);
    const Facts& known = facts[round % 2];
    const bool masked = query + ahead < first + warp_first + 15;
    uint32_t kept = ~0u;  // by dropout, a bit an element
    LeftOperands weights;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      float weight[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = first + warp_first + i / 2 * 8 + lane / 4, column = n * 8 + lane % 4 * 2 + i % 2;
        float p = exp2_fast(scores[n][i] * scale_log2 - known.log_sum[column]);
        if (masked && key > query + column + ahead) p = 0;
        scores[n][i] = weight[i] = p;
        if constexpr (kDropout) {
          const float factor = draws.factor(known.row_key[column], key);
          weight[i] *= factor;
          if (factor == 0) kept &= ~(1u << (n * 4 + i));
        }
      }
      weights.v[n / 2][n % 2 * 2] = pack_bf16(weight[0], weight[1]);
      weights.v[n / 2][n % 2 * 2 + 1] = pack_bf16(weight[2], weight[3]);
    }
    order_products();
    add_weighted_rows(dv[0], weights, dy);
    end_products();
    wait_for_products<1>();  // dv may be under way while the slopes become those of the scores
    hold(slopes);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float slope = slopes[n][i];
        if constexpr (kDropout) slope = kept >> (n * 4 + i) & 1 ? slope * draws.scale : 0.0f;
        slopes[n][i] = scores[n][i] * (slope - known.product[n * 8 + lane % 4 * 2 + i % 2]);
      }
    }
    const LeftOperands gradients = rounded(slopes);
    order_products();
    add_weighted_rows(dk[0], gradients, q);
    end_products();
    wait_for_products<0>();
    hold(dv[0]);
    hold(dk[0]);
  }
  wait_for_copies<0>();
  __syncthreads();
  store_rows<64, 1>(dk, shape.scale, k, warp_first, rows_of(op.dk, first_row, kv_head), op.dk.stride, keys - first,
                    static_cast<int>(head_width));
  store_rows<64, 1>(dv, 1.0f, v, warp_first, rows_of(op.dv, first_row, kv_head), op.dv.stride, keys - first,
                    static_cast<int>(head_width));
}

template <int kGroups, bool kDropout>
void launch_hopper(const AttentionBackward& op, const Draws& draws) {
  constexpr int kRows = 64 * kGroups;
  const AttentionForward& forward = op.forward;
  auto* dy_y = static_cast<float*>(workspace(std::max<int64_t>(1, forward.q.rows) * forward.shape.heads * 4));
  Launch shape{.blocks = std::max<int64_t>(1, divide_up(forward.queries.longest, kRows)),
               .blocks_y = forward.shape.heads,
               .blocks_z = forward.queries.sequences + 1,
               .threads = 128 * kGroups,
               .shared_bytes = 1023 + 2 * SwizzledTile::bytes(kRows) + 4 * SwizzledTile::bytes(kTile)};
  launch(backward_queries_hopper_kernel<kGroups, kDropout>, shape, op, draws, dy_y);
  shape.blocks = std::max<int64_t>(1, divide_up(forward.longest_keys, kRows));
  shape.blocks_y = forward.shape.kv_heads;
  shape.shared_bytes += 2 * static_cast<int64_t>(sizeof(QueryFacts<kTile>));
  launch(backward_keys_hopper_kernel<kGroups, kDropout>, shape, op, draws, static_cast<const float*>(dy_y));
}

template <int kGroups>
void launch_hopper(const AttentionBackward& op) {
  const Draws draws = draws_of(op.forward.dropout, op.forward.queries);
  if (draws.threshold > 0) {
    launch_hopper<kGroups, true>(op, draws);
  } else {
    launch_hopper<kGroups, false>(op, draws);
  }
}

}  // namespace

bool attention_backward_hopper(const AttentionBackward& op, int groups) {
  if (op.forward.shape.head_width > 64 || !is_hopper()) return false;
  if (groups == 1) {
    launch_hopper<1>(op);
  } else {
    launch_hopper<2>(op);
  }
  return true;
}

}  // namespace brisk::cuda
