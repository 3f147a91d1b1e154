// Attention backward by Hopper's matrix instructions, bf16, heads at most 64 wide. A block has a sequence of a head: it
// takes 128 keys at a time, 64 to each of its two warpgroups, and goes over tiles of 128 queries. Every product is made
// once and nobody else adds to its gradients; between blocks of keys dq is kept in f32.
//
// Within a tile each warpgroup makes, of 64 queries at a time, the transposed scores and slopes [64 keys, 64 queries],
// adds to its dk and dv from registers, and leaves the scores' gradients in shared memory; behind a barrier the first
// warpgroup multiplies those of the tile's first 64 queries with all 128 keys, which is their part of dq, and the
// second those of the others. Products of one warpgroup run while the other makes weights of scores, those of dq while
// the next tile's scores are weighed, and the next tile is on its way into shared memory.
#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/attention_backward_cuda.cuh"
#include "ops/attention_hopper.cuh"

namespace brisk::cuda {

namespace {

constexpr int kKeys = 128;     // of a block, at a time
constexpr int kQueries = 128;  // of a tile
constexpr int kHalf = 64;
constexpr int kThreads = 256;
constexpr int64_t kTileBytes = SwizzledTile::bytes(128);
constexpr int64_t kHalfBytes = SwizzledTile::bytes(kHalf);

// What is known of a query: its log-sum-exp (of base 2) and dy.y.
using Known = float2;

struct TileFacts {
  Known known[kQueries];
  uint32_t row_key[kQueries];
};

// k three times; twice: v, q, dy, gradients of a tile's scores, facts.
constexpr int64_t kSharedBytes = 1023 + 13 * kTileBytes + 2 * static_cast<int64_t>(sizeof(TileFacts));

// known [H, N]: eight lanes have a row of a head.
__global__ void __launch_bounds__(kThreads) query_facts_kernel(const AttentionBackward op, Known* known) {
  const AttentionForward& forward = op.forward;
  const int64_t heads = forward.shape.heads, width = forward.shape.head_width, rows = forward.q.rows;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 8;
  const int64_t row = min(at / heads, rows - 1), head = at % heads, column = threadIdx.x % 8 * 8;
  float sum = 0;
  if (column < width) {
    const Floats<8> a = load<8>(static_cast<const bf16_t*>(op.dy.data) + row * op.dy.stride + head * width + column);
    const Floats<8> b =
        load<8>(static_cast<const bf16_t*>(forward.y.data) + row * forward.y.stride + head * width + column);
    for (int i = 0; i < 8; ++i) sum += a.v[i] * b.v[i];
  }
  sum = sum_of_lanes<8>(sum);
  if (threadIdx.x % 8 == 0 && at < rows * heads) {
    const auto* sums = static_cast<const float*>(forward.log_sum_exp.data) + row * forward.log_sum_exp.stride + head;
    known[head * rows + row] = make_float2(*sums * kLog2E, sum);
  }
}

__device__ inline void copy_async_8(void* shared, const void* global, bool exists) {
  const int bytes = exists ? 8 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(bytes)
               : "memory");
}

template <bool kDropout>
__global__ void __launch_bounds__(kThreads, 1)
    backward_sequence_hopper_kernel(const AttentionBackward op, const Draws draws, const Known* known, float* kept_dq) {
  const AttentionForward& forward = op.forward;
  const AttentionShape& shape = forward.shape;
  const int64_t sequences = forward.queries.sequences;
  const int kv_head = static_cast<int>(blockIdx.y), group = static_cast<int>(shape.heads / shape.kv_heads);
  const int head_width = static_cast<int>(shape.head_width);
  if (blockIdx.z == sequences) {
    for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      clear_head_rows<bf16_t>(op.dq, forward.queries.starts[sequences], head, head_width);
    }
    const int64_t end = sequences > 0 ? forward.k_end[sequences - 1] : 0;
    clear_head_rows<bf16_t>(op.dk, end, kv_head, head_width);
    return clear_head_rows<bf16_t>(op.dv, end, kv_head, head_width);
  }
  const AttentionSpan span = attention_span(forward, blockIdx.z);
  const int queries = span.queries, keys = span.keys;
  const int first_query_row = span.first_query, first_key_row = span.first_key;
  const auto rows_of = [&](const Tensor& t, int64_t row, int of_head) {
    return static_cast<bf16_t*>(t.data) + row * t.stride + of_head * head_width;
  };

  char* memory = swizzled_shared();
  const auto q_tile = [&](int which) { return memory + 2 * which * kTileBytes; };
  const auto dy_tile = [&](int which) { return memory + (2 * which + 1) * kTileBytes; };
  const auto v_tile = [&](int block) { return SwizzledTile{memory + (8 + block % 2) * kTileBytes}; };
  const auto k_tile = [&](int block) { return SwizzledTile{memory + (10 + block % 3) * kTileBytes}; };
  // Gradients of the scores of half a tile's queries: [128 keys, 64 queries].
  const auto gradients_of = [&](int which, int half) {
    return SwizzledTile{memory + (4 + 2 * which + half) * kTileBytes};
  };
  auto* facts = reinterpret_cast<TileFacts*>(memory + 13 * kTileBytes);

  const int lane = threadIdx.x % 32, warp_first = threadIdx.x / 32 * 16, warpgroup = threadIdx.x / 128;
  const int group_first = warpgroup * kHalf;
  const int ahead = shape.causal ? keys - queries : keys;  // query i sees keys up to i + ahead
  const float scale_log2 = shape.scale * kLog2E;
  const int all_tiles = (queries + kQueries - 1) / kQueries;
  // Every query belongs to the first block of keys, seen or not: its dq is written there.
  const auto first_tile_of = [&](int first_key) {
    return first_key == 0 || !shape.causal ? 0 : max(0, first_key - ahead) / kQueries;
  };
  const auto copy_keys = [&](int block) {
    const int first_key = block * kKeys, row = first_key_row + first_key;
    k_tile(block).copy<kKeys, kThreads>(rows_of(forward.k, row, kv_head), forward.k.stride, keys - first_key,
                                        head_width);
    v_tile(block).copy<kKeys, kThreads>(rows_of(forward.v, row, kv_head), forward.v.stride, keys - first_key,
                                        head_width);
  };
  const auto copy_queries = [&](int head, int query, int which) {
    const int row = first_query_row + query;
    SwizzledTile{q_tile(which)}.copy<kQueries, kThreads>(rows_of(forward.q, row, head), forward.q.stride,
                                                         queries - query, head_width);
    SwizzledTile{dy_tile(which)}.copy<kQueries, kThreads>(rows_of(op.dy, row, head), op.dy.stride, queries - query,
                                                          head_width);
    const int at = static_cast<int>(threadIdx.x) % kQueries;
    const bool exists = query + at < queries;
    if (threadIdx.x < kQueries) {  // zeros do no harm: what does not exist has no slope
      const Known* from = known + int64_t{head} * forward.q.rows + row;
      copy_async_8(&facts[which].known[at], exists ? from + at : from, exists);
    } else if (kDropout) {
      facts[which].row_key[at] = exists ? attention_row_key(draws, head, row + at) : 0;
    }
  };

  copy_keys(0);
  if (queries > 0) copy_queries(kv_head * group, 0, 0);
  commit_copies();
  wait_for_copies<0>();
  publish_to_products();
  __syncthreads();
  int turn = 0;  // of all rounds: which of two tiles is in use
  // The warpgroup's part of a tile's dq, with the keys from first_key on. Its last product is made in the round after.
  struct Part {
    int first_key, query, head;
  };
  float dq[8][4] = {};
  const auto seen_of = [&](const Part& part) {  // how many of the keys the last of the queries sees
    return min(keys, min(part.query + group_first + kHalf - 1, queries - 1) + ahead + 1) - part.first_key;
  };
  const auto for_each_pair = [&](const Part& part, const auto& body) {
    const int query = part.query + group_first + warp_first % kHalf + lane / 4, row = first_query_row + query;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (query + i * 8 >= queries) continue;
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const int column = n * 8 + lane % 4 * 2;
        if (column < head_width) body(row + i * 8, column, dq[n][2 * i], dq[n][2 * i + 1]);
      }
    }
  };
  const auto load_dq = [&](const Part& part) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) dq[n][i] = 0;
    }
    if (part.first_key == 0 || seen_of(part) <= 0) return;
    for_each_pair(part, [&](int row, int column, float& a, float& b) {
      const float2 before =
          *reinterpret_cast<const float2*>(kept_dq + (row * shape.heads + part.head) * head_width + column);
      a = before.x;
      b = before.y;
    });
  };
  const auto add_dq = [&](const Part& part) {
    const SwizzledTile of_queries = gradients_of((turn + 1) % 2, warpgroup), by = k_tile(part.first_key / kKeys);
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      multiply_transposed(dq, of_queries.matrix(step * 16, 0), by.matrix(step * 16, 0));
    }
    end_products();
  };
  const auto store_dq = [&](const Part& part) {
    const int seen = seen_of(part);
    if (seen <= 0 && part.first_key > 0) return;
    if (seen <= kKeys) {  // there is no more to come
      bf16_t* to = rows_of(op.dq, 0, part.head);
      for_each_pair(part, [&](int row, int column, float& a, float& b) {
        *reinterpret_cast<uint32_t*>(to + row * op.dq.stride + column) = pack_bf16(a * shape.scale, b * shape.scale);
      });
    } else {
      for_each_pair(part, [&](int row, int column, float& a, float& b) {
        *reinterpret_cast<float2*>(kept_dq + (row * shape.heads + part.head) * head_width + column) = make_float2(a, b);
      });
    }
  };
  Part before = {0, 0, 0};  // of the round before; there is none where turn is 0

  for (int first_key = 0; first_key == 0 || first_key < keys; first_key += kKeys) {
    const SwizzledTile k = k_tile(first_key / kKeys), v = v_tile(first_key / kKeys);
    const int first_tile = first_tile_of(first_key);
    const int tiles = max(0, all_tiles - first_tile), rounds = tiles * group;
    const auto head_of = [&](int round) { return kv_head * group + round / tiles; };
    const auto query_of = [&](int round) { return (first_tile + round % tiles) * kQueries; };
    // The tile after this round's, or the next keys and their first tile.
    const auto copy_next = [&](int round) {
      const int which = (turn + 1) % 2, next_key = first_key + kKeys;
      if (round + 1 < rounds) {
        copy_queries(head_of(round + 1), query_of(round + 1), which);
      } else if (next_key < keys) {
        copy_keys(next_key / kKeys);
        if (first_tile_of(next_key) < all_tiles) {
          copy_queries(kv_head * group, first_tile_of(next_key) * kQueries, which);
        }
      }
      commit_copies();
    };

    WarpgroupSums scores, slopes;
    WarpgroupSums dk = {}, dv = {};
    // Scores and slopes of half a tile, each a group of products.
    const auto begin_half = [&](int which, int half) {
      row_products(scores, k, group_first, SwizzledTile{q_tile(which) + half * kHalfBytes});
      end_products();
      row_products(slopes, v, group_first, SwizzledTile{dy_tile(which) + half * kHalfBytes});
      end_products();
    };
    // Weights of the scores, of which `left` are left operands; bits of `kept` say which dropout kept.
    const auto weigh_half = [&](int first_query, int half, LeftOperands& left, uint32_t& kept) {
      const TileFacts& of_tile = facts[turn % 2];
      const int query = first_query + half * kHalf, key = first_key + warp_first + lane / 4;
      const bool masked = min(query + ahead, keys - 1) < first_key + warp_first + 15;
      kept = ~0u;
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const int column = n * 8 + lane % 4 * 2;
        const float4 two = *reinterpret_cast<const float4*>(&of_tile.known[half * kHalf + column]);
        float weight[4];
        [[maybe_unused]] float2 factors[2];  // of this key and the one 8 further
        if constexpr (kDropout) {
          factors[0] = draws.factors(of_tile.row_key[half * kHalf + column], key);
          factors[1] = draws.factors(of_tile.row_key[half * kHalf + column + 1], key);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float p = exp2_fast(scores[n][i] * scale_log2 - (i % 2 == 0 ? two.x : two.z));
          if (masked && key + i / 2 * 8 > min(query + column + i % 2 + ahead, keys - 1)) p = 0;
          scores[n][i] = weight[i] = p;
          if constexpr (kDropout) {
            const float factor = i < 2 ? factors[i].x : factors[i - 2].y;
            weight[i] *= factor;
            if (factor == 0) kept &= ~(1u << (n * 4 + i));
          }
        }
        left.v[n / 2][n % 2 * 2] = pack_bf16(weight[0], weight[1]);
        left.v[n / 2][n % 2 * 2 + 1] = pack_bf16(weight[2], weight[3]);
      }
    };
    // Slopes of the weights become those of the scores.
    const auto slope_half = [&](int half, LeftOperands& left, uint32_t kept) {
      const TileFacts& of_tile = facts[turn % 2];
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const float4 two = *reinterpret_cast<const float4*>(&of_tile.known[half * kHalf + n * 8 + lane % 4 * 2]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float slope = slopes[n][i];
          if constexpr (kDropout) slope = kept >> (n * 4 + i) & 1 ? slope * draws.scale : 0.0f;
          slopes[n][i] = scores[n][i] * (slope - (i % 2 == 0 ? two.y : two.w));
        }
        left.v[n / 2][n % 2 * 2] = pack_bf16(slopes[n][0], slopes[n][1]);
        left.v[n / 2][n % 2 * 2 + 1] = pack_bf16(slopes[n][2], slopes[n][3]);
      }
    };
    const auto keep_gradients = [&](int half, const LeftOperands& gradients) {
      const SwizzledTile to = gradients_of(turn % 2, half);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          *reinterpret_cast<uint32_t*>(to.at(warp_first + i * 8 + lane / 4, n * 8 + lane % 4 * 2)) =
              gradients.v[n / 2][n % 2 * 2 + i];
        }
      }
    };

    // Groups of products are waited for in the order they were queued. None is under way at the end of a round: the
    // compiler would lose sight of it, and take one product at a time.
    for (int round = 0; round < rounds; ++round, ++turn) {
      const int which = turn % 2;
      const Part part = {first_key, query_of(round), head_of(round)};
      LeftOperands weights, gradients;
      uint32_t kept;
      copy_next(round);
      order_products();
      begin_half(which, 0);
      add_dq(before);  // in the first round of what is not used
      wait_for_products<2>();
      hold(scores);
      weigh_half(part.query, 0, weights, kept);
      order_products();
      add_weighted_rows(dv, weights, SwizzledTile{dy_tile(which)});
      end_products();
      wait_for_products<2>();
      hold(slopes);
      slope_half(0, gradients, kept);
      order_products();
      add_weighted_rows(dk, gradients, SwizzledTile{q_tile(which)});
      end_products();
      begin_half(which, 1);
      keep_gradients(0, gradients);
      wait_for_products<4>();
      hold(dq);
      if (turn > 0) store_dq(before);

      load_dq(part);
      before = part;
      wait_for_products<1>();
      hold(scores);
      weigh_half(part.query, 1, weights, kept);
      order_products();
      add_weighted_rows(dv, weights, SwizzledTile{dy_tile(which) + kHalfBytes});
      end_products();
      wait_for_products<1>();
      hold(slopes);
      slope_half(1, gradients, kept);
      order_products();
      add_weighted_rows(dk, gradients, SwizzledTile{q_tile(which) + kHalfBytes});
      end_products();
      keep_gradients(1, gradients);
      wait_for_copies<0>();
      publish_to_products();
      wait_for_products<0>();
      hold(dk);
      hold(dv);
      __syncthreads();  // the next tile has come, this one's gradients are there, and the products with it are made
    }
    // Straight from registers: the keys' place is still in use.
    const auto store = [&](const Tensor& t, const WarpgroupSums& values, float factor) {
      const int key = first_key + warp_first + lane / 4;
      bf16_t* to = rows_of(t, first_key_row + key, kv_head) + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (key + i * 8 >= keys) continue;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          if (n * 8 >= head_width) continue;
          *reinterpret_cast<uint32_t*>(to + i * 8 * t.stride + n * 8) =
              pack_bf16(values[n][2 * i] * factor, values[n][2 * i + 1] * factor);
        }
      }
    };
    store(op.dk, dk, shape.scale);
    store(op.dv, dv, 1.0f);
  }
  if (turn > 0) {
    order_products();
    add_dq(before);
    wait_for_products<0>();
    hold(dq);
    store_dq(before);
  }
}

}  // namespace

bool attention_backward_hopper(const AttentionBackward& op) {
  const AttentionForward& forward = op.forward;
  if (forward.shape.head_width > 64 || !is_hopper()) return false;
  const int64_t pairs = forward.q.rows * forward.shape.heads;
  const int64_t known_bytes = round_up(std::max<int64_t>(1, pairs) * static_cast<int64_t>(sizeof(Known)), 256);
  char* memory = static_cast<char*>(workspace(known_bytes + pairs * forward.shape.head_width * 4));
  auto* known = reinterpret_cast<Known*>(memory);
  auto* kept_dq = reinterpret_cast<float*>(memory + known_bytes);
  launch(query_facts_kernel, {.blocks = divide_up(pairs * 8, kThreads), .threads = kThreads}, op, known);
  const Launch shape{.blocks = 1,
                     .blocks_y = forward.shape.kv_heads,
                     .blocks_z = forward.queries.sequences + 1,
                     .threads = kThreads,
                     .shared_bytes = kSharedBytes};
  const Draws draws = draws_of(forward.dropout, forward.queries);
  if (draws.threshold > 0) {
    launch(backward_sequence_hopper_kernel<true>, shape, op, draws, static_cast<const Known*>(known), kept_dq);
  } else {
    launch(backward_sequence_hopper_kernel<false>, shape, op, draws, static_cast<const Known*>(known), kept_dq);
  }
  return true;
}

}  // namespace brisk::cuda
