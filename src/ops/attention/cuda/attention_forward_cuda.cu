// Attention forward by tensor cores, bf16 or f16: a warp has 16 kParts queries, the block goes over tiles of 64 keys,
// of which the next is loaded while one is used. Scores stay in registers and are the left operand of the product
// with V.
#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/attention/cuda/attention_cudnn_cuda.h"
#include "ops/attention/cuda/attention_forward_cuda.cuh"
#include "ops/attention/cuda/attention_tile_cuda.cuh"
#include "ops/attention/cuda/attention_variants_cuda.h"

namespace brisk::cuda {

namespace {

template <typename T, int kWidth, int kWarps, int kParts, bool kDropout>
__global__ void __launch_bounds__(32 * kWarps) attention_forward_kernel(const AttentionForward op, const Draws draws) {
  constexpr int kQueries = kWarps * 16 * kParts;  // of the block
  const int64_t head = blockIdx.y, head_width = op.shape.head_width;
  if (blockIdx.z == op.queries.sequences) {
    return clear_head_rows<T>(op.y, op.queries.starts[op.queries.sequences], head, head_width);
  }
  const AttentionSpan span = attention_span(op, blockIdx.z);
  // The last queries of a causal sequence have most to do: they begin.
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;
  if (first >= span.queries) return;
  const int queries = span.queries, keys = span.keys;
  const int64_t kv_head = kv_head_of(op.shape, blockIdx.y);
  const auto* q_rows = static_cast<const T*>(op.q.data) + (span.first_query + first) * op.q.stride;
  const auto* k_rows = static_cast<const T*>(op.k.data) + span.first_key * op.k.stride + kv_head * head_width;
  const auto* v_rows = static_cast<const T*>(op.v.data) + span.first_key * op.v.stride + kv_head * head_width;

  char* memory = dynamic_shared();
  using Tile = SharedTile<kWidth, T>;
  const Tile q{reinterpret_cast<T*>(memory)};
  const auto buffer = [&](int which) {  // k, v, k, v
    return Tile{reinterpret_cast<T*>(memory + Tile::bytes(kQueries) + which * Tile::bytes(kForwardKeys))};
  };
  const auto copy_tile = [&](int tile) {
    const int key = tile * kForwardKeys, which = tile % 2 * 2;
    buffer(which).template copy<kForwardKeys, 32 * kWarps>(k_rows + key * op.k.stride, op.k.stride, keys - key,
                                                           head_width);
    buffer(which + 1).template copy<kForwardKeys, 32 * kWarps>(v_rows + key * op.v.stride, op.v.stride, keys - key,
                                                               head_width);
    commit_copies();
  };

  const auto seen_by = [&](int query) { return span.seen_by(min(query, queries - 1), op.shape.causal); };
  const int tiles = (seen_by(first + kQueries - 1) + kForwardKeys - 1) / kForwardKeys;
  q.template copy<kQueries, 32 * kWarps>(q_rows + head * head_width, op.q.stride, queries - first, head_width);
  if (tiles > 0) {
    copy_tile(0);
  } else {
    commit_copies();
  }

  const int lane = threadIdx.x % 32, warp_first = threadIdx.x / 32 * 16 * kParts;
  RowPair rows[kParts];
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    for (int half = 0; half < 2; ++half) {
      const int query = first + warp_first + part * 16 + half * 8 + lane / 4;
      rows[part].seen[half] = seen_by(query);
      if (kDropout && query < queries) {
        rows[part].row_key[half] = attention_row_key(draws, head, span.first_query + query);
      }
    }
  }
  const int least_seen = seen_by(first + warp_first);
  const int most_seen = first + warp_first < queries ? seen_by(first + warp_first + 16 * kParts - 1) : 0;
  const float scale_log2 = op.shape.scale * kLog2E;
  float out[kParts][kWidth / 8][4] = {};
  uint32_t q_operands[kParts][kWidth / 16][4];
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies<0>();
    __syncthreads();
    if (tile == 0) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int step = 0; step < kWidth / 16; ++step) {
          q.left_operand(q_operands[part][step], warp_first + part * 16, step * 16);
        }
      }
    }
    if (tile + 1 < tiles) copy_tile(tile + 1);
    const int key = tile * kForwardKeys;
    if (key >= most_seen) continue;
    const bool half_tile = most_seen - key <= kForwardKeys / 2;
    const Tile k = buffer(tile % 2 * 2), v = buffer(tile % 2 * 2 + 1);
    float scores[kParts][kForwardKeys / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kWidth / 16; ++step) {
#pragma unroll
      for (int n = 0; n < kForwardKeys / 16; ++n) {
        if (n >= kForwardKeys / 32 && half_tile) continue;
        uint32_t b[4];
        k.right_operand_transposed(b, n * 16, step * 16);
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          mma_16x8x16<T>(scores[part][2 * n], q_operands[part][step], b[0], b[1]);
          mma_16x8x16<T>(scores[part][2 * n + 1], q_operands[part][step], b[2], b[3]);
        }
      }
    }
    const bool masked = key + kForwardKeys > least_seen;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      weigh<kWidth, kDropout>(scores[part], rows[part], out[part], scale_log2, key, masked, draws, half_tile);
    }
#pragma unroll
    for (int step = 0; step < kForwardKeys / 16; ++step) {
      if (step >= kForwardKeys / 32 && half_tile) continue;
      uint32_t weights[kParts][4];
#pragma unroll
      for (int part = 0; part < kParts; ++part) as_left_operand<T>(weights[part], scores[part], step);
#pragma unroll
      for (int n = 0; n < kWidth / 16; ++n) {
        uint32_t b[4];
        v.right_operand(b, step * 16, n * 16);
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          mma_16x8x16<T>(out[part][2 * n], weights[part], b[0], b[1]);
          mma_16x8x16<T>(out[part][2 * n + 1], weights[part], b[2], b[3]);
        }
      }
    }
  }
  if (tiles == 0) {
    wait_for_copies<0>();
    __syncthreads();
  }

  // Rows leave through the warp's own part of q's tile, which its lanes have read: whole rows, 16 bytes a lane.
  __syncwarp();
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    for (int half = 0; half < 2; ++half) {
      float sum = rows[part].sum[half];
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      const int row = warp_first + part * 16 + half * 8 + lane / 4;
      const float factor = sum > 0 ? draws.scale / sum : 0.0f;
#pragma unroll
      for (int n = 0; n < kWidth / 8; ++n) {
        *reinterpret_cast<uint32_t*>(q.at(row, n * 8 + lane % 4 * 2)) =
            pack_pair<T>(out[part][n][2 * half] * factor, out[part][n][2 * half + 1] * factor);
      }
      if (lane % 4 == 0 && first + row < queries && op.log_sum_exp.data != nullptr) {
        static_cast<float*>(op.log_sum_exp.data)[(span.first_query + first + row) * op.log_sum_exp.stride + head] =
            sum > 0 ? rows[part].largest[half] * op.shape.scale + logf(sum) : -INFINITY;
      }
    }
  }
  __syncwarp();
  auto* y_rows = static_cast<T*>(op.y.data) + (span.first_query + first) * op.y.stride + head * head_width;
  for (int i = lane; i < 16 * kParts * (kWidth / 8); i += 32) {
    const int row = warp_first + i / (kWidth / 8), column = i % (kWidth / 8) * 8;
    if (first + row < queries && column < head_width) {
      *reinterpret_cast<uint4*>(y_rows + row * op.y.stride + column) =
          *reinterpret_cast<const uint4*>(q.at(row, column));
    }
  }
}

template <int kWidth, int kWarps, int kParts, typename T = bf16_t>
void launch_forward(const AttentionForward& op) {
  constexpr int kQueries = kWarps * 16 * kParts;
  const Launch shape{
      .blocks = std::max<int64_t>(1, divide_up(op.queries.longest, kQueries)),
      .blocks_y = op.shape.heads,
      .blocks_z = op.queries.sequences + 1,
      .threads = 32 * kWarps,
      .shared_bytes = SharedTile<kWidth, T>::bytes(kQueries) + 4 * SharedTile<kWidth, T>::bytes(kForwardKeys)};
  const Draws draws = draws_of(op.dropout, op.queries);
  if (draws.threshold > 0) {
    launch(attention_forward_kernel<T, kWidth, kWarps, kParts, true>, shape, op, draws);
  } else {
    launch(attention_forward_kernel<T, kWidth, kWarps, kParts, false>, shape, op, draws);
  }
}

}  // namespace

AttentionVariant usual_attention_forward(const AttentionForward& op) {
  if (has_narrow_heads(op)) return AttentionVariant::narrow;
  if (fits_tensor_cores(op, DType::f16)) return AttentionVariant::by_tile;
  if (!fits_tensor_cores(op)) return AttentionVariant::plain;
  const int64_t width = op.shape.head_width;
  return width > 32 && width <= 64 && op.queries.longest > 256 ? AttentionVariant::by_wide_tile
                                                               : AttentionVariant::by_tile;
}

bool attention_forward(const AttentionForward& op, AttentionVariant variant) {
  if (variant == AttentionVariant::plain) {
    attention_forward_plain(op);
    return true;
  }
  if (variant == AttentionVariant::narrow) {
    if (has_narrow_heads(op)) attention_forward_narrow(op);
    return has_narrow_heads(op);
  }
  if (variant == AttentionVariant::cudnn) return attention_forward_cudnn(op);
  const int64_t width = op.shape.head_width;
  if (variant == AttentionVariant::by_tile && fits_tensor_cores(op, DType::f16)) {  // fewer kernels: less to compile
    width <= 64 ? launch_forward<64, 4, 1, f16_t>(op) : launch_forward<128, 4, 1, f16_t>(op);
    return true;
  }
  if (!fits_tensor_cores(op)) return false;
  if (variant == AttentionVariant::hopper) return attention_forward_hopper(op, 1);
  if (variant == AttentionVariant::hopper_pair) return attention_forward_hopper(op, 2);
  if (variant == AttentionVariant::by_wide_tile && width <= 64) {
    launch_forward<64, 4, 2>(op);
    return true;
  }
  if (variant != AttentionVariant::by_tile) return false;
  if (width <= 32) {
    launch_forward<32, 4, 1>(op);
  } else if (width <= 64) {
    launch_forward<64, 4, 1>(op);
  } else if (width <= 96) {
    launch_forward<96, 4, 1>(op);
  } else {
    launch_forward<128, 4, 1>(op);
  }
  return true;
}

}  // namespace brisk::cuda
