// Attention backward by tensor cores, bf16 or f16, in two kernels that each write what they own, so that nothing is
// added to by two blocks: one goes over a tile of queries (dq), one over a tile of keys (dk, dv). Both make the scores
// again from q, k and log_sum_exp: two products more than the least, for the same bits every time.
#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/attention/cuda/attention_backward_cuda.cuh"
#include "ops/attention/cuda/attention_cudnn_cuda.h"
#include "ops/attention/cuda/attention_variants_cuda.h"

namespace brisk::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;

// dq; and dy.y of every query and head into dy_y [Nq, H].
template <typename T, int kWidth, int kParts, bool kDropout>
__global__ void __launch_bounds__(kThreads)
    attention_backward_queries_kernel(const AttentionBackward op, const Draws draws, float* dy_y) {
  constexpr int kQueries = kWarps * 16 * kParts;  // of the block
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int64_t head = blockIdx.y, head_width = shape.head_width;
  if (blockIdx.z == forward.queries.sequences) {
    return clear_head_rows<T>(op.dq, forward.queries.starts[forward.queries.sequences], head, head_width);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;
  if (first >= span.queries) return;
  const int queries = span.queries, keys = span.keys;
  const int64_t kv_head = kv_head_of(shape, blockIdx.y), first_row = span.first_query + first;
  const auto rows_of = [&](const Tensor& t, int64_t row, int64_t of_head) {
    return static_cast<T*>(t.data) + row * t.stride + of_head * head_width;
  };
  const T *k_rows = rows_of(forward.k, span.first_key, kv_head), *v_rows = rows_of(forward.v, span.first_key, kv_head);

  char* memory = dynamic_shared();
  using Tile = SharedTile<kWidth, T>;
  const Tile q{reinterpret_cast<T*>(memory)}, dy{reinterpret_cast<T*>(memory + Tile::bytes(kQueries))};
  const auto buffer = [&](int which) {  // k, v, k, v
    return Tile{reinterpret_cast<T*>(memory + 2 * Tile::bytes(kQueries) + which * Tile::bytes(kOthers))};
  };
  const auto copy_tile = [&](int tile) {
    const int key = tile * kOthers, which = tile % 2 * 2;
    buffer(which).template copy<kOthers, kThreads>(k_rows + key * forward.k.stride, forward.k.stride, keys - key,
                                                   head_width);
    buffer(which + 1).template copy<kOthers, kThreads>(v_rows + key * forward.v.stride, forward.v.stride, keys - key,
                                                       head_width);
    commit_copies();
  };
  const auto seen_by = [&](int query) { return span.seen_by(min(query, queries - 1), shape.causal); };
  const int tiles = (seen_by(first + kQueries - 1) + kOthers - 1) / kOthers;
  q.template copy<kQueries, kThreads>(rows_of(forward.q, first_row, head), forward.q.stride, queries - first,
                                      head_width);
  dy.template copy<kQueries, kThreads>(rows_of(op.dy, first_row, head), op.dy.stride, queries - first, head_width);
  commit_copies();
  if (tiles > 0) copy_tile(0);
  wait_for_copies<0>();
  __syncthreads();

  const int lane = threadIdx.x % 32, warp_first = threadIdx.x / 32 * 16 * kParts;
  float log_sum[kParts][2], product[kParts][2];
  int seen[kParts][2];
  uint32_t row_key[kParts][2];
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int row = warp_first + part * 16;
    const float both = row_product(dy, row, rows_of(forward.y, first_row, head), forward.y.stride, queries - first,
                                   static_cast<int>(head_width));
    if (lane % 2 == 0 && first + row + lane / 2 < queries) {
      dy_y[(first_row + row + lane / 2) * shape.heads + head] = both;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      product[part][half] = __shfl_sync(~0u, both, (half * 8 + lane / 4) * 2);
      const int query = first + row + half * 8 + lane / 4;
      const int64_t at = span.first_query + query;
      const bool exists = query < queries;
      seen[part][half] = seen_by(query);
      row_key[part][half] = kDropout && exists ? attention_row_key(draws, head, at) : 0;
      log_sum[part][half] = exists ? log_sum_of(forward, at, head) : INFINITY;
    }
  }
  const int least_seen = seen_by(first + warp_first);
  const int most_seen = first + warp_first < queries ? seen_by(first + warp_first + 16 * kParts - 1) : 0;
  const float scale_log2 = shape.scale * kLog2E;
  float dq[kParts][kWidth / 8][4] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile > 0) {
      wait_for_copies<0>();
      __syncthreads();
    }
    if (tile + 1 < tiles) copy_tile(tile + 1);
    const Tile k = buffer(tile % 2 * 2), v = buffer(tile % 2 * 2 + 1);
#pragma unroll 1
    for (int others = 0; others < kOthers; others += kAtOnce) {
      const int key = tile * kOthers + others;
      if (key >= most_seen) break;
      float scores[kParts][kAtOnce / 8][4] = {}, slopes[kParts][kAtOnce / 8][4] = {};
      row_products<kWidth, kParts>(scores, q, warp_first, k, others);
      row_products<kWidth, kParts>(slopes, dy, warp_first, v, others);
      if (key + kAtOnce > least_seen) {
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
#pragma unroll
          for (int n = 0; n < kAtOnce / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              if (key + n * 8 + lane % 4 * 2 + i % 2 >= seen[part][i / 2]) scores[part][n][i] = -INFINITY;
            }
          }
        }
      }
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        [[maybe_unused]] KeptPair kept[4];  // of columns 8 apart
#pragma unroll
        for (int n = 0; n < kAtOnce / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int half = i / 2, column = key + n * 8 + lane % 4 * 2 + i % 2;
            const float p = exp2_fast(scores[part][n][i] * scale_log2 - log_sum[part][half]);
            float slope = slopes[part][n][i];
            if constexpr (kDropout) {
              if (n % 2 == 0) kept[i] = draws.kept(row_key[part][half], column);
              slope = (n % 2 == 0 ? kept[i].here : kept[i].further) ? slope : 0.0f;
            }
            slopes[part][n][i] = p * (slope * draws.scale - product[part][half]);
          }
        }
      }
      add_weighted_rows<kWidth, kParts>(dq, slopes, k, others);
    }
  }
  store_rows<kWidth, kParts>(dq, shape.scale, q, warp_first, rows_of(op.dq, first_row, head), op.dq.stride,
                             queries - first, static_cast<int>(head_width));
}

// dk and dv, over all query heads that share the key head.
template <typename T, int kWidth, int kParts, bool kDropout>
__global__ void __launch_bounds__(kThreads)
    attention_backward_keys_kernel(const AttentionBackward op, const Draws draws, const float* dy_y) {
  constexpr int kKeys = kWarps * 16 * kParts;  // of the block
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int64_t kv_head = blockIdx.y, head_width = shape.head_width, sequences = forward.queries.sequences;
  if (blockIdx.z == sequences) {
    const int64_t end = sequences > 0 ? forward.k_end[sequences - 1] : 0;
    clear_head_rows<T>(op.dk, end, kv_head, head_width);
    return clear_head_rows<T>(op.dv, end, kv_head, head_width);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const int first = static_cast<int>(blockIdx.x) * kKeys;  // the first keys are seen by most queries: they begin
  if (first >= span.keys) return;
  const int queries = span.queries, keys = span.keys;
  const int64_t group = shape.heads / shape.kv_heads, first_row = span.first_key + first;
  const auto rows_of = [&](const Tensor& t, int64_t row, int64_t of_head) {
    return static_cast<T*>(t.data) + row * t.stride + of_head * head_width;
  };

  char* memory = dynamic_shared();
  using Tile = SharedTile<kWidth, T>;
  const Tile k{reinterpret_cast<T*>(memory)}, v{reinterpret_cast<T*>(memory + Tile::bytes(kKeys))};
  const auto buffer = [&](int which) {  // q, dy, q, dy
    return Tile{reinterpret_cast<T*>(memory + 2 * Tile::bytes(kKeys) + which * Tile::bytes(kOthers))};
  };
  auto* facts = reinterpret_cast<QueryFacts<kOthers>*>(memory + 2 * Tile::bytes(kKeys) + 4 * Tile::bytes(kOthers));

  // The tiles of queries that see any of these keys, of one head after the other.
  const int first_tile = span.first_seeing(first, shape.causal) / kOthers;
  const int tiles_of_head = max(0, (queries + kOthers - 1) / kOthers - first_tile);
  const int rounds = tiles_of_head * static_cast<int>(group);
  const auto copy_round = [&](int round) {
    const int64_t head = kv_head * group + round / tiles_of_head;
    const int query = (first_tile + round % tiles_of_head) * kOthers, which = round % 2;
    const int64_t row = span.first_query + query;
    buffer(2 * which).template copy<kOthers, kThreads>(rows_of(forward.q, row, head), forward.q.stride, queries - query,
                                                       head_width);
    buffer(2 * which + 1)
        .template copy<kOthers, kThreads>(rows_of(op.dy, row, head), op.dy.stride, queries - query, head_width);
    commit_copies();
    if (threadIdx.x < kOthers) {
      const int at = threadIdx.x;
      const bool exists = query + at < queries;
      facts[which].log_sum[at] = exists ? log_sum_of(forward, row + at, head) : INFINITY;
      facts[which].product[at] = exists ? dy_y[(row + at) * shape.heads + head] : 0.0f;
      if (kDropout) facts[which].row_key[at] = exists ? attention_row_key(draws, head, row + at) : 0;
    }
  };
  k.template copy<kKeys, kThreads>(rows_of(forward.k, first_row, kv_head), forward.k.stride, keys - first, head_width);
  v.template copy<kKeys, kThreads>(rows_of(forward.v, first_row, kv_head), forward.v.stride, keys - first, head_width);
  commit_copies();
  if (rounds > 0) copy_round(0);

  const int warp_first = threadIdx.x / 32 * 16 * kParts;
  const int key_low = first + warp_first;
  const int ahead = shape.causal ? keys - queries : keys;  // query i sees keys up to i + ahead
  const float scale_log2 = shape.scale * kLog2E;
  float dk[kParts][kWidth / 8][4] = {}, dv[kParts][kWidth / 8][4] = {};
  for (int round = 0; round < rounds; ++round) {
    wait_for_copies<0>();
    __syncthreads();
    if (round + 1 < rounds) copy_round(round + 1);
    const Tile q = buffer(round % 2 * 2), dy = buffer(round % 2 * 2 + 1);
    const QueryFacts<kOthers>& known = facts[round % 2];
#pragma unroll 1
    for (int others = 0; others < kOthers; others += kAtOnce) {
      const int query = (first_tile + round % tiles_of_head) * kOthers + others;
      if (query >= queries) break;
      if (query + kAtOnce - 1 + ahead < key_low) continue;  // none of them sees any of the warp's keys
      float scores[kParts][kAtOnce / 8][4] = {}, slopes[kParts][kAtOnce / 8][4] = {};
      row_products<kWidth, kParts>(scores, k, warp_first, q, others);
      row_products<kWidth, kParts>(slopes, v, warp_first, dy, others);
      weigh_keys<kParts, kDropout>(scores, slopes, known, others, key_low, keys, query, ahead, scale_log2, draws);
      add_weighted_rows<kWidth, kParts>(dv, scores, dy, others);
      add_weighted_rows<kWidth, kParts>(dk, slopes, q, others);
    }
  }
  wait_for_copies<0>();
  __syncthreads();
  store_rows<kWidth, kParts>(dk, shape.scale, k, warp_first, rows_of(op.dk, first_row, kv_head), op.dk.stride,
                             keys - first, static_cast<int>(head_width));
  store_rows<kWidth, kParts>(dv, draws.scale, v, warp_first, rows_of(op.dv, first_row, kv_head), op.dv.stride,
                             keys - first, static_cast<int>(head_width));
}

template <int kWidth, int kParts, bool kDropout, typename T>
void launch_backward(const AttentionBackward& op, const Draws& draws) {
  constexpr int kRows = kWarps * 16 * kParts;
  using Tile = SharedTile<kWidth, T>;
  const AttentionForward& forward = op.forward;
  auto* dy_y = static_cast<float*>(workspace(std::max<int64_t>(1, forward.q.rows) * forward.shape.heads * 4));
  Launch shape{.blocks = std::max<int64_t>(1, divide_up(forward.queries.longest, kRows)),
               .blocks_y = forward.shape.heads,
               .blocks_z = forward.queries.sequences + 1,
               .threads = kThreads,
               .shared_bytes = 2 * Tile::bytes(kRows) + 4 * Tile::bytes(kOthers)};
  launch(attention_backward_queries_kernel<T, kWidth, kParts, kDropout>, shape, op, draws, dy_y);
  shape.blocks = std::max<int64_t>(1, divide_up(forward.longest_keys, kRows));
  shape.blocks_y = forward.shape.kv_heads;
  shape.shared_bytes += 2 * static_cast<int64_t>(sizeof(QueryFacts<kOthers>));
  launch(attention_backward_keys_kernel<T, kWidth, kParts, kDropout>, shape, op, draws,
         static_cast<const float*>(dy_y));
}

template <int kWidth, int kParts, typename T = bf16_t>
void launch_backward(const AttentionBackward& op) {
  const Draws draws = draws_of(op.forward.dropout, op.forward.queries);
  if (draws.threshold > 0) {
    launch_backward<kWidth, kParts, true, T>(op, draws);
  } else {
    launch_backward<kWidth, kParts, false, T>(op, draws);
  }
}

bool has_shared_memory_for_widest() {
  return fits_shared_memory(6 * SharedTile<128>::bytes(64) + 2 * static_cast<int64_t>(sizeof(QueryFacts<kOthers>)));
}

bool attention_backward_by_tile(const AttentionBackward& op, bool wide) {
  const int64_t width = op.forward.shape.head_width;
  if (wide) {
    launch_backward<64, 2>(op);
  } else if (width <= 32) {
    launch_backward<32, 1>(op);
  } else if (width <= 64) {
    launch_backward<64, 1>(op);
  } else if (width <= 96) {
    launch_backward<96, 1>(op);
  } else {
    if (!has_shared_memory_for_widest()) return false;
    launch_backward<128, 1>(op);
  }
  return true;
}

// f16 has fewer kernels: less to compile.
bool attention_backward_f16(const AttentionBackward& op) {
  if (op.forward.shape.head_width <= 64) {
    launch_backward<64, 1, f16_t>(op);
  } else {
    if (!has_shared_memory_for_widest()) return false;
    launch_backward<128, 1, f16_t>(op);
  }
  return true;
}

bool gradients_fit_tensor_cores(const AttentionBackward& op, DType type = DType::bf16) {
  const auto fits = [type](const Tensor& t) { return t.type == type && in_eights(t); };
  return fits_tensor_cores(op.forward, type) && fits(op.dy) && fits(op.dq) && fits(op.dk) && fits(op.dv);
}

}  // namespace

bool attention_backward(const AttentionBackward& op, AttentionVariant variant) {
  switch (variant) {
    case AttentionVariant::plain: attention_backward_plain(op); return true;
    case AttentionVariant::narrow:
      if (has_narrow_heads(op)) attention_backward_narrow(op);
      return has_narrow_heads(op);
    case AttentionVariant::cudnn: return attention_backward_cudnn(op, true);
    case AttentionVariant::cudnn_unordered: return attention_backward_cudnn(op, false);
    default: break;
  }
  if (variant == AttentionVariant::by_tile && gradients_fit_tensor_cores(op, DType::f16))
    return attention_backward_f16(op);
  if (!gradients_fit_tensor_cores(op)) return false;
  switch (variant) {
    case AttentionVariant::by_sequence: return attention_backward_by_sequence(op);
    case AttentionVariant::by_tile: return attention_backward_by_tile(op, false);
    case AttentionVariant::by_wide_tile:
      return op.forward.shape.head_width <= 64 && attention_backward_by_tile(op, true);
    case AttentionVariant::hopper: return attention_backward_hopper(op);
    default: return false;
  }
}

AttentionVariant usual_attention_backward(const AttentionBackward& op) {
  if (has_narrow_heads(op)) return AttentionVariant::narrow;
  if (gradients_fit_tensor_cores(op, DType::f16)) {
    return op.forward.shape.head_width <= 64 || has_shared_memory_for_widest() ? AttentionVariant::by_tile
                                                                               : AttentionVariant::plain;
  }
  if (!gradients_fit_tensor_cores(op)) return AttentionVariant::plain;
  if (by_sequence_is_usual(op)) return AttentionVariant::by_sequence;
  const int64_t width = op.forward.shape.head_width;
  if (width > 32 && width <= 64 && op.forward.queries.longest > 256) return AttentionVariant::by_wide_tile;
  return width <= 96 || has_shared_memory_for_widest() ? AttentionVariant::by_tile : AttentionVariant::plain;
}

}  // namespace brisk::cuda
