// Attention backward where a block holds all keys of a sequence and head: every product is made once. A warp has 16
// keys; the block goes over tiles of 64 queries. What the scores' gradients are is left in shared memory, and from
// there each warp makes its part of the tile's dq. Sequences are in classes by their number of keys, one launch each,
// so that a short one does not hold the shared memory of a long one.
#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/attention_backward_cuda.cuh"

namespace brisk::cuda {

namespace {

// Left operand [16 queries, 16 keys] from gradients of scores that lie as [keys, queries].
template <int kStride>
__device__ void left_operand_transposed(uint32_t (&a)[4], const bf16_t* slopes, int query, int key) {
  const int lane = threadIdx.x % 32;
  load_matrices_transposed(a, slopes + (key + lane % 8 + lane / 16 * 8) * kStride + query + lane / 8 % 2 * 8);
}

// Sequences with more than `more_than` keys and at most kKeys.
template <int kWidth, int kKeys, bool kDropout>
__global__ void __launch_bounds__(2 * kKeys, kWidth <= 64 && kKeys == 128 ? 2 : 1)
    attention_backward_short_kernel(const AttentionBackward op, const Draws draws, int more_than) {
  constexpr int kWarps = kKeys / 16, kSlopeStride = kOthers + 8;
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int64_t kv_head = blockIdx.y, head_width = shape.head_width, sequences = forward.queries.sequences;
  const int64_t group = shape.heads / shape.kv_heads;
  if (blockIdx.z == sequences) {  // of the class of the shortest
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      clear_head_rows<bf16_t>(op.dq, forward.queries.starts[sequences], head, head_width);
    }
    const int64_t end = sequences > 0 ? forward.k_end[sequences - 1] : 0;
    clear_head_rows<bf16_t>(op.dk, end, kv_head, head_width);
    return clear_head_rows<bf16_t>(op.dv, end, kv_head, head_width);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  if (span.keys > kKeys || span.keys <= more_than) return;
  const int queries = static_cast<int>(span.queries), keys = static_cast<int>(span.keys);
  const auto rows_of = [&](const Tensor& t, int64_t row, int64_t of_head) {
    return static_cast<bf16_t*>(t.data) + row * t.stride + of_head * head_width;
  };

  char* memory = dynamic_shared();
  using Tile = SharedTile<kWidth>;
  const Tile k{reinterpret_cast<bf16_t*>(memory)}, v{reinterpret_cast<bf16_t*>(memory + Tile::bytes(kKeys))};
  const auto buffer = [&](int which) {  // q, dy, q, dy
    return Tile{reinterpret_cast<bf16_t*>(memory + 2 * Tile::bytes(kKeys) + which * Tile::bytes(kOthers))};
  };
  char* after = memory + 2 * Tile::bytes(kKeys) + 4 * Tile::bytes(kOthers);
  auto* slopes_kept = reinterpret_cast<bf16_t*>(after);  // [kKeys, kOthers]
  auto* facts = reinterpret_cast<QueryFacts*>(after + kKeys * kSlopeStride * 2);

  const int tiles = (queries + kOthers - 1) / kOthers, rounds = tiles * static_cast<int>(group);
  const auto copy_round = [&](int round) {
    const int64_t head = kv_head * group + round / tiles;
    const int query = round % tiles * kOthers, which = round % 2;
    const int64_t row = span.first_query + query;
    buffer(2 * which).template copy<kOthers>(rows_of(forward.q, row, head), forward.q.stride, queries - query,
                                             head_width);
    buffer(2 * which + 1).template copy<kOthers>(rows_of(op.dy, row, head), op.dy.stride, queries - query, head_width);
    commit_copies();
    // Two threads a query: the facts, and dy.y from global memory, where both were just read.
    const int at = threadIdx.x / 2;
    if (at < kOthers) {
      const bool exists = query + at < queries;
      float product = 0;
      if (exists) {
        const bf16_t *dy_row = rows_of(op.dy, row + at, head), *y_row = rows_of(forward.y, row + at, head);
        for (int column = threadIdx.x % 2 * 8; column < head_width; column += 16) {
          const Floats<8> a = load<8>(dy_row + column), b = load<8>(y_row + column);
          for (int i = 0; i < 8; ++i) product += a.v[i] * b.v[i];
        }
      }
      product += __shfl_xor_sync(~0u, product, 1);
      facts[which].product[at] = product;
      facts[which].log_sum[at] =
          exists ? static_cast<const float*>(forward.log_sum_exp.data)[(row + at) * forward.log_sum_exp.stride + head] *
                       kLog2E
                 : INFINITY;
      if (kDropout) facts[which].row_key[at] = exists ? attention_row_key(draws, head, row + at) : 0;
    }
  };
  k.template copy<kKeys>(rows_of(forward.k, span.first_key, kv_head), forward.k.stride, keys, head_width);
  v.template copy<kKeys>(rows_of(forward.v, span.first_key, kv_head), forward.v.stride, keys, head_width);
  commit_copies();
  if (rounds > 0) copy_round(0);

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_first = warp * 16;
  const int ahead = shape.causal ? keys - queries : keys;  // query i sees keys up to i + ahead
  const int key_steps = (keys + 15) / 16;                  // warps that have keys
  const float scale_log2 = shape.scale * kLog2E;
  float dk[1][kWidth / 8][4] = {}, dv[1][kWidth / 8][4] = {};
  for (int round = 0; round < rounds; ++round) {
    wait_for_copies<0>();
    __syncthreads();  // the tile has come, and nobody reads the last one's slopes
    if (round + 1 < rounds) copy_round(round + 1);
    const Tile q = buffer(round % 2 * 2), dy = buffer(round % 2 * 2 + 1);
    const int tile = round % tiles * kOthers;
    if (warp < key_steps) {
#pragma unroll 1
      for (int others = 0; others < kOthers; others += kAtOnce) {
        const int query = tile + others;
        if (query >= queries) break;
        float scores[1][kAtOnce / 8][4] = {}, slopes[1][kAtOnce / 8][4] = {};
        if (query + kAtOnce - 1 + ahead >= warp_first) {  // otherwise none of them sees any of the warp's keys
          row_products<kWidth, 1>(scores, k, warp_first, q, others);
          row_products<kWidth, 1>(slopes, v, warp_first, dy, others);
          weigh_keys<1, kDropout>(scores, slopes, facts[round % 2], others, warp_first, query, ahead, scale_log2,
                                  draws);
          add_weighted_rows<kWidth, 1>(dv, scores, dy, others);
          add_weighted_rows<kWidth, 1>(dk, slopes, q, others);
        }
#pragma unroll
        for (int n = 0; n < kAtOnce / 8; ++n) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            *reinterpret_cast<uint32_t*>(slopes_kept + (warp_first + half * 8 + lane / 4) * kSlopeStride + others +
                                         n * 8 + lane % 4 * 2) =
                pack_bf16(slopes[0][n][2 * half], slopes[0][n][2 * half + 1]);
          }
        }
      }
    }
    __syncthreads();
    // dq of the tile: units of 16 queries and 16 columns, dealt out to the warps.
    bf16_t* dq_rows = rows_of(op.dq, span.first_query + tile, kv_head * group + round / tiles);
    for (int unit = warp; unit < kOthers / 16 * (kWidth / 16); unit += kWarps) {
      const int query = unit % (kOthers / 16) * 16, column = unit / (kOthers / 16) * 16;
      if (tile + query >= queries) continue;
      const int seen = min(keys, tile + query + 15 + ahead + 1);  // by the last of the 16
      float dq[2][4] = {};
      for (int key = 0; key < seen; key += 16) {
        uint32_t left[4], right[4];
        left_operand_transposed<kSlopeStride>(left, slopes_kept, query, key);
        k.right_operand(right, key, column);
        mma_16x8x16(dq[0], left, right[0], right[1]);
        mma_16x8x16(dq[1], left, right[2], right[3]);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = query + half * 8 + lane / 4;
        if (tile + row >= queries) continue;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const int at = column + n * 8 + lane % 4 * 2;
          if (at < head_width) {
            *reinterpret_cast<uint32_t*>(dq_rows + row * op.dq.stride + at) =
                pack_bf16(dq[n][2 * half] * shape.scale, dq[n][2 * half + 1] * shape.scale);
          }
        }
      }
    }
  }
  wait_for_copies<0>();
  __syncthreads();
  store_rows<kWidth, 1>(dk, shape.scale, k, warp_first, rows_of(op.dk, span.first_key, kv_head), op.dk.stride, keys,
                        static_cast<int>(head_width));
  store_rows<kWidth, 1>(dv, 1.0f, v, warp_first, rows_of(op.dv, span.first_key, kv_head), op.dv.stride, keys,
                        static_cast<int>(head_width));
}

// The class of sequences with (more_than, kKeys] keys; the shortest class, of more than -1, has those without keys and
// the rows of no sequence too.
template <int kWidth, int kKeys>
constexpr int64_t kSharedBytes = 2 * SharedTile<kWidth>::bytes(kKeys) +
                                 4 * SharedTile<kWidth>::bytes(kOthers) + kKeys*(kOthers + 8) * 2 +
                                 2 * static_cast<int64_t>(sizeof(QueryFacts));

template <int kWidth, int kKeys>
void launch_class(const AttentionBackward& op, int more_than) {
  const AttentionForward& forward = op.forward;
  const Launch shape{.blocks = 1,
                     .blocks_y = forward.shape.kv_heads,
                     .blocks_z = forward.queries.sequences + (more_than < 0 ? 1 : 0),
                     .threads = 2 * kKeys,
                     .shared_bytes = kSharedBytes<kWidth, kKeys>};
  const Draws draws = draws_of(forward.dropout, forward.queries);
  if (draws.threshold > 0) {
    launch(attention_backward_short_kernel<kWidth, kKeys, true>, shape, op, draws, more_than);
  } else {
    launch(attention_backward_short_kernel<kWidth, kKeys, false>, shape, op, draws, more_than);
  }
}

// The classes a batch needs. Where sequences are about as long as the longest, one launch takes them all.
template <int kWidth>
void launch_classes(const AttentionBackward& op) {
  const int64_t longest = op.forward.longest_keys;
  const int64_t usual = op.forward.k.rows / std::max<int64_t>(1, op.forward.queries.sequences);
  if constexpr (kWidth <= 64) {
    if (usual > 192) return launch_class<kWidth, 256>(op, -1);
  }
  if (usual > 96 && longest <= 128) return launch_class<kWidth, 128>(op, -1);
  launch_class<kWidth, 64>(op, -1);
  if (longest > 64) launch_class<kWidth, 128>(op, 64);
  if constexpr (kWidth <= 64) {
    if (longest > 128) launch_class<kWidth, 256>(op, 128);
  }
}

}  // namespace

bool attention_backward_short(const AttentionBackward& op) {
  const int64_t width = op.forward.shape.head_width, longest = op.forward.longest_keys;
  if (longest > (width <= 64 ? 256 : 128)) return false;
  if (width <= 32) {
    if (!fits_shared_memory(kSharedBytes<32, 256>)) return false;
    launch_classes<32>(op);
  } else if (width <= 64) {
    if (!fits_shared_memory(longest > 128 ? kSharedBytes<64, 256> : kSharedBytes<64, 128>)) return false;
    launch_classes<64>(op);
  } else {
    if (!fits_shared_memory(kSharedBytes<128, 128>)) return false;
    launch_classes<128>(op);
  }
  return true;
}

}  // namespace brisk::cuda
