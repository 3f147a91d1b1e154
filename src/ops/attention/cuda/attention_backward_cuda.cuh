// Products and stores that the kernels of attention backward share. A warp has 16 kParts rows of one side (queries for
// dq, keys for dk and dv) and takes kAtOnce rows of the other at a time.
#pragma once

#include "ops/attention/cuda/attention_forward_cuda.cuh"
#include "ops/attention/cuda/attention_tile_cuda.cuh"

namespace brisk::cuda {

constexpr int kOthers = 64;  // rows of the other side in a tile
constexpr int kAtOnce = 32;  // of those, in registers

// product [16 kParts, kAtOnce] = rows `mine` of a times rows `others` of b, transposed.
template <int kWidth, int kParts, typename T>
__device__ void row_products(float (&product)[kParts][kAtOnce / 8][4], const SharedTile<kWidth, T>& a, int mine,
                             const SharedTile<kWidth, T>& b, int others) {
#pragma unroll
  for (int step = 0; step < kWidth / 16; ++step) {
    uint32_t left[kParts][4];
#pragma unroll
    for (int part = 0; part < kParts; ++part) a.left_operand(left[part], mine + part * 16, step * 16);
#pragma unroll
    for (int n = 0; n < kAtOnce / 16; ++n) {
      uint32_t right[4];
      b.right_operand_transposed(right, others + n * 16, step * 16);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        mma_16x8x16<T>(product[part][2 * n], left[part], right[0], right[1]);
        mma_16x8x16<T>(product[part][2 * n + 1], left[part], right[2], right[3]);
      }
    }
  }
}

// out [16 kParts, kWidth] += weights [16 kParts, kAtOnce] times rows `others` of b.
template <int kWidth, int kParts, typename T>
__device__ void add_weighted_rows(float (&out)[kParts][kWidth / 8][4], const float (&weights)[kParts][kAtOnce / 8][4],
                                  const SharedTile<kWidth, T>& b, int others) {
#pragma unroll
  for (int step = 0; step < kAtOnce / 16; ++step) {
    uint32_t left[kParts][4];
#pragma unroll
    for (int part = 0; part < kParts; ++part) as_left_operand<T>(left[part], weights[part], step);
#pragma unroll
    for (int n = 0; n < kWidth / 16; ++n) {
      uint32_t right[4];
      b.right_operand(right, others + step * 16, n * 16);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        mma_16x8x16<T>(out[part][2 * n], left[part], right[0], right[1]);
        mma_16x8x16<T>(out[part][2 * n + 1], left[part], right[2], right[3]);
      }
    }
  }
}

// The warp's rows of a gradient leave through its own rows of a tile: whole rows, 16 bytes a lane.
template <int kWidth, int kParts, typename Tile, typename T>
__device__ void store_rows(const float (&values)[kParts][kWidth / 8][4], float factor, const Tile& by, int warp_first,
                           T* rows, int64_t stride, int existing, int head_width) {
  const int lane = threadIdx.x % 32;
  __syncwarp();
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        *reinterpret_cast<uint32_t*>(by.at(warp_first + part * 16 + half * 8 + lane / 4, n * 8 + lane % 4 * 2)) =
            pack_pair<T>(values[part][n][2 * half] * factor, values[part][n][2 * half + 1] * factor);
      }
    }
  }
  __syncwarp();
  constexpr int kPieces = kWidth / 8;
  if constexpr (32 % kPieces == 0) {
    constexpr int kAtOnce = 32 / kPieces;
    const int column = lane % kPieces * 8;
    T* to = rows + (warp_first + lane / kPieces) * stride + column;
#pragma unroll
    for (int i = 0; i < 16 * kParts / kAtOnce; ++i) {
      const int row = warp_first + lane / kPieces + i * kAtOnce;
      if (row < existing && column < head_width) {
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(by.at(row, column));
      }
      to += kAtOnce * stride;
    }
  } else {
    for (int i = lane; i < 16 * kParts * kPieces; i += 32) {
      const int row = warp_first + i / kPieces, column = i % kPieces * 8;
      if (row < existing && column < head_width) {
        *reinterpret_cast<uint4*>(rows + row * stride + column) = *reinterpret_cast<const uint4*>(by.at(row, column));
      }
    }
  }
}

// dy.y of the 16 rows from `row` on, of which `existing` exist: lanes 2r and 2r + 1 get row r's.
template <typename Tile, typename T>
__device__ float row_product(const Tile& dy, int row, const T* y_rows, int64_t stride, int existing, int head_width) {
  const int lane = threadIdx.x % 32, mine = row + lane / 2;
  float sum = 0;
  if (mine < existing) {
    for (int column = lane % 2 * 8; column < head_width; column += 16) {
      const Floats<8> a = load<8>(static_cast<const T*>(dy.at(mine, column)));
      const Floats<8> b = load<8>(y_rows + mine * stride + column);
      for (int i = 0; i < 8; ++i) sum += a.v[i] * b.v[i];
    }
  }
  return sum + __shfl_xor_sync(~0u, sum, 1);
}

// The log-sum-exp of a query's scores, of base 2; infinite where it sees no key, so that its weights are 0.
__device__ inline float log_sum_of(const AttentionForward& op, int64_t row, int64_t head) {
  const float sum = static_cast<const float*>(op.log_sum_exp.data)[row * op.log_sum_exp.stride + head];
  return sum == -INFINITY ? INFINITY : sum * kLog2E;
}

// What a kernel of keys knows of each query of a tile.
template <int kQueries>
struct QueryFacts {
  float log_sum[kQueries];  // of base 2; infinite: there is no such query
  float product[kQueries];  // dy.y
  uint32_t row_key[kQueries];
};

// Scores [16 kParts keys, 8 kTiles queries] become weights, and the slopes of the weights those of the scores. `key` is
// the warp's first key, a multiple of 16, `query` the first query, `at` its place in the tile; query i sees keys up to
// i + ahead, of which there are `keys`. Weights that dropout keeps are not scaled: their sums are, by draws.scale.
template <int kParts, bool kDropout, int kTiles, typename Facts>
__device__ void weigh_keys(float (&scores)[kParts][kTiles][4], float (&slopes)[kParts][kTiles][4], const Facts& known,
                           int at, int key, int keys, int query, int ahead, float scale_log2, const Draws& draws) {
  const int lane = threadIdx.x % 32;
  if (min(query + ahead, keys - 1) < key + 16 * kParts - 1) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int seen = min(query + n * 8 + lane % 4 * 2 + i % 2 + ahead, keys - 1);
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          if (key + part * 16 + i / 2 * 8 + lane / 4 > seen) scores[part][n][i] = -INFINITY;
        }
      }
    }
  }
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int column = n * 8 + lane % 4 * 2 + i;
      const float log_sum = known.log_sum[at + column], product = known.product[at + column];
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        [[maybe_unused]] KeptPair kept;
        if constexpr (kDropout) kept = draws.kept(known.row_key[at + column], key + part * 16 + lane / 4);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float p = exp2_fast(scores[part][n][2 * half + i] * scale_log2 - log_sum);
          float slope = slopes[part][n][2 * half + i], weight = p;
          if constexpr (kDropout) {
            const bool is_kept = half == 0 ? kept.here : kept.further;
            slope = is_kept ? slope : 0.0f;
            weight = is_kept ? p : 0.0f;
          }
          scores[part][n][2 * half + i] = weight;
          slopes[part][n][2 * half + i] = p * (slope * draws.scale - product);
        }
      }
    }
  }
}

// A block has a whole sequence of a head (attention_backward_sequence_cuda.cu); false: it does not fit.
bool attention_backward_by_sequence(const AttentionBackward& op);
// Whether it fits, and the kernels by tile are not likely to be faster; those for Hopper may be, where there is enough
// to do for timing to find out.
bool by_sequence_is_usual(const AttentionBackward& op);

// As by tile, with Hopper's matrix instructions (attention_backward_hopper.cu), heads at most 64 wide; false: nothing
// was done.
bool attention_backward_hopper(const AttentionBackward& op);

}  // namespace brisk::cuda
