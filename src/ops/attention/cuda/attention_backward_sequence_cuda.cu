// Attention backward where a block has a whole sequence of a head: every product is made once, and nobody else adds to
// its gradients. A warp has 16 kParts keys; the block goes over tiles of queries. The gradients of a tile's scores are
// left in shared memory, and from there each warp makes its part of the tile's dq. Of sequences with more keys than
// fit, the keys are taken in blocks, and dq is kept in f32 in between.
//
// Sequences are in classes by their number of keys, one launch each, so that a short one does not hold the shared
// memory of a long one.
#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/attention/cuda/attention_backward_cuda.cuh"

namespace brisk::cuda {

namespace {

// How a class divides its work.
template <int kWidthOf, int kKeysOf, int kPartsOf, int kQueriesOf>
struct Division {
  static constexpr int kWidth = kWidthOf;
  static constexpr int kKeys = kKeysOf;        // of the block
  static constexpr int kParts = kPartsOf;      // 16 keys each, of a warp
  static constexpr int kQueries = kQueriesOf;  // of a tile
  static constexpr int kWarps = kKeys / (16 * kParts);
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kSlopeStride = kQueries + 8;
  using Tile = SharedTile<kWidth>;
  static constexpr int64_t kSlopeBytes = int64_t{kKeys} * kSlopeStride * 2;
  static constexpr int64_t kSharedBytes = 2 * Tile::bytes(kKeys) + 4 * Tile::bytes(kQueries) + kSlopeBytes +
                                          2 * static_cast<int64_t>(sizeof(QueryFacts<kQueries>));
  static_assert(kThreads >= 2 * kQueries, "two threads gather a query's facts");
};

using LongNarrow = Division<32, 256, 2, 128>;
using LongUsual = Division<64, 256, 2, 128>;
using LongWide = Division<128, 128, 1, 64>;

// Sequences with more than `more_than` keys and at most `at_most`.
struct SequenceClass {
  int more_than, at_most;
};

// Between blocks of keys, where there are several.
struct KeptGradients {
  float* dq = nullptr;    // [Nq, H, K]
  float* dy_y = nullptr;  // [Nq, H]
};

// Left operand [16 queries, 16 keys] from gradients of scores that lie as [keys, queries].
template <int kStride>
__device__ void left_operand_transposed(uint32_t (&a)[4], const bf16_t* slopes, int query, int key) {
  const int lane = threadIdx.x % 32;
  load_matrices_transposed(a, slopes + (key + lane % 8 + lane / 16 * 8) * kStride + query + lane / 8 % 2 * 8);
}

template <typename By, bool kDropout>
__global__ void __launch_bounds__(By::kThreads)
    attention_backward_sequence_kernel(const AttentionBackward op, const Draws draws, const SequenceClass of,
                                       const KeptGradients kept) {
  constexpr int kWidth = By::kWidth, kKeys = By::kKeys, kParts = By::kParts, kQueries = By::kQueries;
  using Tile = typename By::Tile;
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
  if (span.keys > of.at_most || span.keys <= of.more_than) return;
  const int queries = span.queries, keys = span.keys;
  const auto rows_of = [&](const Tensor& t, int64_t row, int64_t of_head) {
    return static_cast<bf16_t*>(t.data) + row * t.stride + of_head * head_width;
  };

  char* memory = dynamic_shared();
  const Tile k{reinterpret_cast<bf16_t*>(memory)}, v{reinterpret_cast<bf16_t*>(memory + Tile::bytes(kKeys))};
  const auto buffer = [&](int which) {  // q, dy, q, dy
    return Tile{reinterpret_cast<bf16_t*>(memory + 2 * Tile::bytes(kKeys) + which * Tile::bytes(kQueries))};
  };
  char* after = memory + 2 * Tile::bytes(kKeys) + 4 * Tile::bytes(kQueries);
  auto* slopes_kept = reinterpret_cast<bf16_t*>(after);  // [kKeys, kQueries]
  auto* facts = reinterpret_cast<QueryFacts<kQueries>*>(after + By::kSlopeBytes);

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_first = warp * 16 * kParts;
  const int ahead = shape.causal ? keys - queries : keys;  // query i sees keys up to i + ahead
  const float scale_log2 = shape.scale * kLog2E;
  const int all_tiles = (queries + kQueries - 1) / kQueries;
  for (int first_key = 0; first_key == 0 || first_key < keys; first_key += kKeys) {
    // Every query belongs to the first block of keys, seen or not: its dq is written there.
    const int first_tile = first_key == 0 ? 0 : span.first_seeing(first_key, shape.causal) / kQueries;
    const int tiles = all_tiles - first_tile, rounds = max(0, tiles) * static_cast<int>(group);
    const auto copy_round = [&](int round) {
      const int64_t head = kv_head * group + round / tiles;
      const int query = (first_tile + round % tiles) * kQueries, which = round % 2;
      const int64_t row = span.first_query + query;
      buffer(2 * which).template copy<kQueries, By::kThreads>(rows_of(forward.q, row, head), forward.q.stride,
                                                              queries - query, head_width);
      buffer(2 * which + 1)
          .template copy<kQueries, By::kThreads>(rows_of(op.dy, row, head), op.dy.stride, queries - query, head_width);
      commit_copies();
      const int at = threadIdx.x / 2;  // two threads a query
      if (at < kQueries) {
        const bool exists = query + at < queries;
        float product = 0;
        if (exists && first_key == 0) {
          const bf16_t *dy_row = rows_of(op.dy, row + at, head), *y_row = rows_of(forward.y, row + at, head);
          for (int column = threadIdx.x % 2 * 8; column < head_width; column += 16) {
            const Floats<8> a = load<8>(dy_row + column), b = load<8>(y_row + column);
            for (int i = 0; i < 8; ++i) product += a.v[i] * b.v[i];
          }
        }
        product += __shfl_xor_sync(~0u, product, 1);
        if (exists && kept.dy_y != nullptr) {  // the same thread reads it again
          float* place = kept.dy_y + (row + at) * shape.heads + head;
          if (first_key > 0) {
            product = *place;
          } else if (threadIdx.x % 2 == 0) {
            *place = product;
          }
        }
        if (threadIdx.x % 2 == 0) {
          facts[which].product[at] = product;
          facts[which].log_sum[at] = exists ? log_sum_of(forward, row + at, head) : INFINITY;
          if (kDropout) facts[which].row_key[at] = exists ? attention_row_key(draws, head, row + at) : 0;
        }
      }
    };
    const int block_keys = min(kKeys, keys - first_key);
    k.template copy<kKeys, By::kThreads>(rows_of(forward.k, span.first_key + first_key, kv_head), forward.k.stride,
                                         block_keys, head_width);
    v.template copy<kKeys, By::kThreads>(rows_of(forward.v, span.first_key + first_key, kv_head), forward.v.stride,
                                         block_keys, head_width);
    commit_copies();
    if (rounds > 0) copy_round(0);

    float dk[kParts][kWidth / 8][4] = {}, dv[kParts][kWidth / 8][4] = {};
    for (int round = 0; round < rounds; ++round) {
      wait_for_copies<0>();
      __syncthreads();  // the tile has come, and nobody reads the last one's slopes
      if (round + 1 < rounds) copy_round(round + 1);
      const Tile q = buffer(round % 2 * 2), dy = buffer(round % 2 * 2 + 1);
      const int tile = (first_tile + round % tiles) * kQueries;
      if (warp_first < block_keys) {
#pragma unroll 1
        for (int others = 0; others < kQueries; others += kAtOnce) {
          const int query = tile + others, key = first_key + warp_first;
          if (query >= queries) break;
          float scores[kParts][kAtOnce / 8][4] = {}, slopes[kParts][kAtOnce / 8][4] = {};
          if (query + kAtOnce - 1 + ahead >= key) {  // otherwise none of them sees any of the warp's keys
            row_products<kWidth, kParts>(scores, k, warp_first, q, others);
            row_products<kWidth, kParts>(slopes, v, warp_first, dy, others);
            weigh_keys<kParts, kDropout>(scores, slopes, facts[round % 2], others, key, keys, query, ahead, scale_log2,
                                         draws);
            add_weighted_rows<kWidth, kParts>(dv, scores, dy, others);
            add_weighted_rows<kWidth, kParts>(dk, slopes, q, others);
          }
#pragma unroll
          for (int part = 0; part < kParts; ++part) {
#pragma unroll
            for (int n = 0; n < kAtOnce / 8; ++n) {
#pragma unroll
              for (int half = 0; half < 2; ++half) {
                const int row = warp_first + part * 16 + half * 8 + lane / 4, column = others + n * 8 + lane % 4 * 2;
                *reinterpret_cast<uint32_t*>(slopes_kept + row * By::kSlopeStride + column) =
                    pack_bf16(slopes[part][n][2 * half], slopes[part][n][2 * half + 1]);
              }
            }
          }
        }
      }
      __syncthreads();
      // dq of the tile: units of 32 queries and 32 columns, dealt out to the warps.
      const int64_t head = kv_head * group + round / tiles;
      for (int unit = warp; unit < kQueries / 32 * (kWidth / 32); unit += By::kWarps) {
        const int query = unit % (kQueries / 32) * 32, column = unit / (kQueries / 32) * 32;
        if (tile + query >= queries) continue;
        // What the last of the 32 queries sees: of this block of keys, and whether there is more in the next.
        const int seen = min(keys, min(tile + query + 31, queries - 1) + ahead + 1) - first_key;
        const bool first_part = first_key == 0, last_part = seen <= kKeys;
        if (seen <= 0 && !first_part) continue;
        float* kept_rows = kept.dq + ((span.first_query + tile + query) * shape.heads + head) * head_width + column;
        const auto place = [&](int part, int half, int n) {  // of a lane's two columns in kept.dq
          return kept_rows + (part * 16 + half * 8 + lane / 4) * shape.heads * head_width + n * 8 + lane % 4 * 2;
        };
        const auto exists = [&](int part, int half, int n) {
          return tile + query + part * 16 + half * 8 + lane / 4 < queries && column + n * 8 + lane % 4 * 2 < head_width;
        };
        float dq[2][4][4] = {};
        if (!first_part) {
#pragma unroll
          for (int part = 0; part < 2; ++part) {
#pragma unroll
            for (int n = 0; n < 4; ++n) {
#pragma unroll
              for (int half = 0; half < 2; ++half) {
                if (!exists(part, half, n)) continue;
                const float2 before = *reinterpret_cast<const float2*>(place(part, half, n));
                dq[part][n][2 * half] = before.x;
                dq[part][n][2 * half + 1] = before.y;
              }
            }
          }
        }
        for (int key = 0; key < min(seen, kKeys); key += 16) {
          uint32_t left[2][4], right[2][4];
#pragma unroll
          for (int part = 0; part < 2; ++part) {
            left_operand_transposed<By::kSlopeStride>(left[part], slopes_kept, query + part * 16, key);
            k.right_operand(right[part], key, column + part * 16);
          }
#pragma unroll
          for (int part = 0; part < 2; ++part) {
#pragma unroll
            for (int n = 0; n < 4; ++n) {
              mma_16x8x16(dq[part][n], left[part], right[n / 2][n % 2 * 2], right[n / 2][n % 2 * 2 + 1]);
            }
          }
        }
        bf16_t* dq_rows = rows_of(op.dq, span.first_query + tile + query, head) + column;
#pragma unroll
        for (int part = 0; part < 2; ++part) {
#pragma unroll
          for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              if (!exists(part, half, n)) continue;
              const float a = dq[part][n][2 * half], b = dq[part][n][2 * half + 1];
              if (last_part) {
                *reinterpret_cast<uint32_t*>(dq_rows + (part * 16 + half * 8 + lane / 4) * op.dq.stride + n * 8 +
                                             lane % 4 * 2) = pack_bf16(a * shape.scale, b * shape.scale);
              } else {
                *reinterpret_cast<float2*>(place(part, half, n)) = make_float2(a, b);
              }
            }
          }
        }
      }
    }
    wait_for_copies<0>();
    __syncthreads();
    store_rows<kWidth, kParts>(dk, shape.scale, k, warp_first, rows_of(op.dk, span.first_key + first_key, kv_head),
                               op.dk.stride, block_keys, static_cast<int>(head_width));
    store_rows<kWidth, kParts>(dv, draws.scale, v, warp_first, rows_of(op.dv, span.first_key + first_key, kv_head),
                               op.dv.stride, block_keys, static_cast<int>(head_width));
    __syncthreads();  // before the next keys come
  }
}

// The class of sequences with (more_than, at_most] keys; the shortest class, of more than -1, has the rows of no
// sequence too.
template <typename By>
void launch_class(const AttentionBackward& op, const SequenceClass& of, const KeptGradients& kept) {
  const AttentionForward& forward = op.forward;
  const Launch shape{.blocks = 1,
                     .blocks_y = forward.shape.kv_heads,
                     .blocks_z = forward.queries.sequences + (of.more_than < 0 ? 1 : 0),
                     .threads = By::kThreads,
                     .shared_bytes = By::kSharedBytes};
  const Draws draws = draws_of(forward.dropout, forward.queries);
  if (draws.threshold > 0) {
    launch(attention_backward_sequence_kernel<By, true>, shape, op, draws, of, kept);
  } else {
    launch(attention_backward_sequence_kernel<By, false>, shape, op, draws, of, kept);
  }
}

// The classes a batch needs. Where sequences are about as long as the longest, one launch takes them all.
template <typename Short, typename Middle, typename Long>
bool launch_classes(const AttentionBackward& op) {
  constexpr int kShort = Short::kKeys, kMiddle = Middle::kKeys, kLong = Long::kKeys;
  const AttentionForward& forward = op.forward;
  const auto longest = static_cast<int>(forward.longest_keys);
  const int64_t usual = forward.k.rows / std::max<int64_t>(1, forward.queries.sequences);
  if (!fits_shared_memory(longest > kMiddle ? Long::kSharedBytes : Middle::kSharedBytes)) return false;
  KeptGradients kept;
  if (longest > kLong) {
    const int64_t rows = std::max<int64_t>(1, forward.q.rows), heads = forward.shape.heads;
    const int64_t dq_bytes = round_up(rows * heads * forward.shape.head_width * 4, 256);
    char* memory = static_cast<char*>(workspace(dq_bytes + rows * heads * 4));
    kept = {reinterpret_cast<float*>(memory), reinterpret_cast<float*>(memory + dq_bytes)};
  }
  if (usual > kMiddle * 3 / 2) {
    launch_class<Long>(op, {-1, longest}, kept);
  } else if (usual > kMiddle * 3 / 4 && longest <= kMiddle) {
    launch_class<Middle>(op, {-1, longest}, kept);
  } else {
    launch_class<Short>(op, {-1, kShort}, kept);
    if (longest > kShort) launch_class<Middle>(op, {kShort, kMiddle}, kept);
    if (longest > kMiddle) launch_class<Long>(op, {kMiddle, longest}, kept);
  }
  return true;
}

}  // namespace

bool by_sequence_is_usual(const AttentionBackward& op) {
  const int64_t width = op.forward.shape.head_width, longest = op.forward.longest_keys;
  // A block a sequence and head: of long sequences there must be enough to keep the GPU busy to the end. The kernels
  // that divide a sequence make seven products where these make five.
  const int64_t blocks = op.forward.queries.sequences * op.forward.shape.kv_heads;
  const int64_t turns = divide_up(blocks, multiprocessors());
  const bool busy = 5 * turns * multiprocessors() < 7 * blocks;
  if (width <= 32) return fits_shared_memory(LongNarrow::kSharedBytes) && (longest <= 256 || busy);
  if (width <= 64) return fits_shared_memory(LongUsual::kSharedBytes) && (longest <= 256 || busy);
  return longest <= 128 && fits_shared_memory(LongWide::kSharedBytes);
}

bool attention_backward_by_sequence(const AttentionBackward& op) {
  const int64_t width = op.forward.shape.head_width;
  if (width <= 32) return launch_classes<Division<32, 64, 1, 64>, Division<32, 128, 2, 64>, LongNarrow>(op);
  if (width <= 64) return launch_classes<Division<64, 64, 1, 64>, Division<64, 128, 2, 64>, LongUsual>(op);
  if (op.forward.longest_keys > 128) return false;
  return launch_classes<Division<128, 64, 1, 64>, LongWide, LongWide>(op);
}

}  // namespace brisk::cuda
