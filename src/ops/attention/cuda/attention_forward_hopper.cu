// Attention forward by Hopper's matrix instructions, bf16, heads at most 64 wide: as attention_forward_cuda.cu, with 64
// queries a warpgroup.
#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/attention/cuda/attention_forward_cuda.cuh"
#include "ops/attention/cuda/attention_hopper.cuh"

namespace brisk::cuda {

namespace {

template <int kGroups, bool kDropout>
__global__ void __launch_bounds__(128 * kGroups, kGroups == 1 ? 4 : 2)
    attention_forward_hopper_kernel(const AttentionForward op, const Draws draws) {
  constexpr int kQueries = 64 * kGroups, kKeys = kForwardKeys;
  const int64_t head = blockIdx.y, head_width = op.shape.head_width;
  if (blockIdx.z == op.queries.sequences) {
    return clear_head_rows<bf16_t>(op.y, op.queries.starts[op.queries.sequences], head, head_width);
  }
  const AttentionSpan span = attention_span(op, blockIdx.z);
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;
  if (first >= span.queries) return;
  const int queries = span.queries, keys = span.keys;
  const int64_t kv_head = kv_head_of(op.shape, blockIdx.y);
  const auto rows_of = [&](const Tensor& t, int64_t row, int64_t of_head) {
    return static_cast<bf16_t*>(t.data) + row * t.stride + of_head * head_width;
  };
  const bf16_t *k_rows = rows_of(op.k, span.first_key, kv_head), *v_rows = rows_of(op.v, span.first_key, kv_head);

  char* memory = swizzled_shared();
  const SwizzledTile q{memory};
  const auto buffer = [&](int which) {  // k, v, k, v
    return SwizzledTile{memory + SwizzledTile::bytes(kQueries) + which * SwizzledTile::bytes(kKeys)};
  };
  const auto copy_tile = [&](int tile) {
    const int key = tile * kKeys, which = tile % 2 * 2;
    buffer(which).template copy<kKeys, 128 * kGroups>(k_rows + key * op.k.stride, op.k.stride, keys - key,
                                                      static_cast<int>(head_width));
    buffer(which + 1).template copy<kKeys, 128 * kGroups>(v_rows + key * op.v.stride, op.v.stride, keys - key,
                                                          static_cast<int>(head_width));
    commit_copies();
  };
  const auto seen_by = [&](int query) { return span.seen_by(min(query, queries - 1), op.shape.causal); };
  const int tiles = (seen_by(first + kQueries - 1) + kKeys - 1) / kKeys;
  q.copy<kQueries, 128 * kGroups>(rows_of(op.q, span.first_query + first, head), op.q.stride, queries - first,
                                  static_cast<int>(head_width));
  commit_copies();
  if (tiles > 0) copy_tile(0);
  wait_for_copies<0>();
  publish_to_products();
  __syncthreads();

  const int lane = threadIdx.x % 32, warp_first = threadIdx.x / 32 * 16, group_first = threadIdx.x / 128 * 64;
  RowPair rows;
  for (int half = 0; half < 2; ++half) {
    const int query = first + warp_first + half * 8 + lane / 4;
    rows.seen[half] = seen_by(query);
    if (kDropout && query < queries) rows.row_key[half] = attention_row_key(draws, head, span.first_query + query);
  }
  const int least_seen = seen_by(first + group_first);
  const int most_seen = first + group_first < queries ? seen_by(first + group_first + 63) : 0;
  const float scale_log2 = op.shape.scale * kLog2E;
  WarpgroupSums out = {};
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile > 0) {
      wait_for_copies<0>();
      publish_to_products();
      __syncthreads();
    }
    if (tile + 1 < tiles) copy_tile(tile + 1);
    const int key = tile * kKeys;
    if (key >= most_seen) continue;  // the whole warpgroup
    const SwizzledTile k = buffer(tile % 2 * 2), v = buffer(tile % 2 * 2 + 1);
    WarpgroupSums scores;
    order_products();
    // Not from registers: ptxas 13.0 gives those of a left operand to others though the next round needs them.
    row_products(scores, q, group_first, k);
    end_products();
    wait_for_products<0>();
    hold(scores);
    weigh<64, kDropout>(scores, rows, out, scale_log2, key, key + kKeys > least_seen, draws);
    const LeftOperands weights = rounded(scores);
    order_products();
    add_weighted_rows(out, weights, v);
    end_products();
    wait_for_products<0>();
    hold(out);
  }

  // Rows leave through the warp's own part of q's tile: whole rows, 16 bytes a lane.
  __syncthreads();  // nobody multiplies with q any more
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = rows.sum[half];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const int row = warp_first + half * 8 + lane / 4;
    const float factor = sum > 0 ? draws.scale / sum : 0.0f;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      *reinterpret_cast<uint32_t*>(q.at(row, n * 8 + lane % 4 * 2)) =
          pack_bf16(out[n][2 * half] * factor, out[n][2 * half + 1] * factor);
    }
    if (lane % 4 == 0 && first + row < queries && op.log_sum_exp.data != nullptr) {
      static_cast<float*>(op.log_sum_exp.data)[(span.first_query + first + row) * op.log_sum_exp.stride + head] =
          sum > 0 ? rows.largest[half] * op.shape.scale + logf(sum) : -INFINITY;
    }
  }
  __syncwarp();
  bf16_t* y_rows = rows_of(op.y, span.first_query + first, head);
  for (int i = lane; i < 16 * 8; i += 32) {
    const int row = warp_first + i / 8, column = i % 8 * 8;
    if (first + row < queries && column < head_width) {
      *reinterpret_cast<uint4*>(y_rows + row * op.y.stride + column) =
          *reinterpret_cast<const uint4*>(q.at(row, column));
    }
  }
}

template <int kGroups>
void launch_hopper(const AttentionForward& op) {
  constexpr int kQueries = 64 * kGroups;
  const Launch shape{.blocks = std::max<int64_t>(1, divide_up(op.queries.longest, kQueries)),
                     .blocks_y = op.shape.heads,
                     .blocks_z = op.queries.sequences + 1,
                     .threads = 128 * kGroups,
                     .shared_bytes = 1023 + SwizzledTile::bytes(kQueries) + 4 * SwizzledTile::bytes(kForwardKeys)};
  const Draws draws = draws_of(op.dropout, op.queries);
  if (draws.threshold > 0) {
    launch(attention_forward_hopper_kernel<kGroups, true>, shape, op, draws);
  } else {
    launch(attention_forward_hopper_kernel<kGroups, false>, shape, op, draws);
  }
}

}  // namespace

bool attention_forward_hopper(const AttentionForward& op, int groups) {
  if (op.shape.head_width > 64 || !is_hopper()) return false;
  if (groups == 1) {
    launch_hopper<1>(op);
  } else {
    launch_hopper<2>(op);
  }
  return true;
}

}  // namespace brisk::cuda
