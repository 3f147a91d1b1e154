#include "ops/attention/attention_tile_simd.h"

namespace brisk::BRISK_ISA {

namespace {

struct BackwardScratch {
  BackwardScratch(const Head& head, void* memory) {
    Scratch scratch{memory};
    const int64_t block = std::min(kKeyBlock, round_up(head.keys, kPanel));
    key_panels = scratch.take(block * round_up(head.width, 4));
    value_panels = scratch.take(block * round_up(head.width, 4));
    key_rows = scratch.take((block + kLanes) * head.padded);
    value_rows = scratch.take((block + kLanes) * head.padded);
    dkeys = scratch.take(block * head.padded);
    dvalues = scratch.take(block * head.padded);
    query_rows = scratch.take(kQueryTile * head.padded);
    dy_rows = scratch.take(kQueryTile * head.padded);
    scores = scratch.take(kQueryTile * kTileStride);
    dscores = scratch.take(kQueryTile * kTileStride);
    dqueries = scratch.take(head.group * head.queries * head.padded);
    bytes = scratch.bytes();
  }
  float *key_panels, *value_panels, *key_rows, *value_rows, *dkeys, *dvalues;  // of the block
  float *query_rows, *dy_rows, *scores, *dscores;                              // of the tile
  float* dqueries;                                                             // [group, queries, padded]
  int64_t bytes;
};

// Adds the gradients of a query's scores, of key `block` and those after it, to its sequence's part of the bias's.
void add_bias_gradient(const AttentionBackward& op, const Head& head, const BiasPart& part, int64_t query_head,
                       int64_t query, int64_t block, int64_t keys, const float* dscores) {
  float* sums =
      op.dbias_parts.f32() + query_head * op.dbias_parts.stride + part.middle + block - (head.position + query);
  for_columns(keys, [&](int64_t j, int64_t lanes)
                        BRISK_INLINE { store(sums + j, load(sums + j, lanes) + load(dscores + j), lanes); });
}

void backward_tile(const AttentionBackward& op, const Head& head, const BiasPart& part, const Tile& tile, int64_t g,
                   const BackwardScratch& scratch) {
  const AttentionForward& forward = op.forward;
  const int64_t query_head = head.first_head + g, column = query_head * head.width;
  const int64_t first_row = head.row + tile.first;
  const float dropout_scale = forward.dropout.active() ? forward.dropout.scale() : 1.0f;

  // The query carries the scale: so do the scores and dk, and dq gets it at the end.
  pack_rows(forward.q, first_row, tile.rows, column, head.width, forward.shape.scale, scratch.query_rows, head.padded);
  pack_rows(op.dy, first_row, tile.rows, column, head.width, 1.0f, scratch.dy_rows, head.padded);
  tile_products(head, tile, scratch.query_rows, scratch.key_panels, scratch.scores);
  tile_products(head, tile, scratch.dy_rows, scratch.value_panels, scratch.dscores);
  for (int64_t i = 0; i < tile.rows; ++i) {
    const int64_t row = first_row + i;
    // The products over rows below look up to a group of keys past a row's limit: zeros there.
    const int64_t group_end = tile.group_limit(i / kGroupRows * kGroupRows);
    float *scores = scratch.scores + i * kTileStride, *dscores = scratch.dscores + i * kTileStride;
    if (forward.bias) add_bias(forward, head, query_head, tile.first + i, tile.block, tile.limit(i), scores);
    differentiate_row(scores, dscores, tile.limit(i), round_up(group_end + kGroupRows, kLanes),
                      RowDropout(forward, query_head, row), dropout_scale, tile.block,
                      forward.log_sum_exp.f32()[row * forward.log_sum_exp.stride + query_head],
                      dot_row(scratch.dy_rows + i * head.padded, forward.y, row, column, head.width));
    if (op.dbias) add_bias_gradient(op, head, part, query_head, tile.first + i, tile.block, tile.limit(i), dscores);
  }

  float* dqueries = scratch.dqueries + (g * head.queries + tile.first) * head.padded;
  for (int64_t i = 0; i < tile.rows; i += kGroupRows) {
    product_of_group(tile.group_rows(i), head.vectors, tile.group_limit(i),
                     {scratch.dscores + i * kTileStride, kTileStride, 1}, {scratch.key_rows, head.padded, kPanel},
                     dqueries + i * head.padded, head.padded, tile.block > 0);
  }
  const int64_t seen = tile.limit(tile.rows - 1);
  for (int64_t j = 0; j < seen; j += kGroupRows) {
    const int64_t from = tile.first_row_of(j), rows = std::min(kGroupRows, seen - j);
    product_of_group(rows, head.vectors, tile.rows - from, {scratch.scores + from * kTileStride + j, 1, kTileStride},
                     {scratch.dy_rows + from * head.padded, head.padded, kPanel}, scratch.dvalues + j * head.padded,
                     head.padded, true);
    product_of_group(rows, head.vectors, tile.rows - from, {scratch.dscores + from * kTileStride + j, 1, kTileStride},
                     {scratch.query_rows + from * head.padded, head.padded, kPanel}, scratch.dkeys + j * head.padded,
                     head.padded, true);
  }

  if (!tile.last_of(head)) return;
  for (int64_t i = 0; i < tile.rows; ++i) {
    unpack_row(dqueries + i * head.padded, forward.shape.scale, op.dq, first_row + i, column, head.width);
  }
}

// The gradient of a query that sees no key.
void clear_row(const Tensor& t, int64_t row, int64_t col, int64_t width) {
  with_element(t.type, [&](auto of_t) {
    auto* out = t.as<decltype(of_t)>() + row * t.stride + col;
    for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE { store(out + c, zero(), lanes); });
  });
}

// One query, as where a classifier reads the first row alone: straight from the rows of k and v to those of dk and dv,
// which are a number times q and dy each. Nothing is packed.
void backward_single(const AttentionBackward& op, const Head& head, const BiasPart& part,
                     const BackwardScratch& scratch) {
  const AttentionForward& forward = op.forward;
  const int64_t row = head.row, column = head.first_head * head.width, width = head.width;
  float *q = scratch.query_rows, *dy = scratch.dy_rows, *dq = scratch.dqueries;
  pack_rows(forward.q, row, 1, column, width, forward.shape.scale, q, head.padded);
  pack_rows(op.dy, row, 1, column, width, 1.0f, dy, head.padded);
  for (int64_t c = 0; c < head.padded; c += kLanes) store(dq + c, zero());
  const float dy_dot_y = dot_row(dy, forward.y, row, column, width);
  const float log_sum_exp = forward.log_sum_exp.f32()[row * forward.log_sum_exp.stride + head.first_head];
  const RowDropout dropout(forward, head.first_head, row);
  const float dropout_scale = forward.dropout.active() ? forward.dropout.scale() : 1.0f;

  for (int64_t block = 0; block < head.keys; block += kKeyBlock) {
    const int64_t keys = std::min(kKeyBlock, head.keys - block), key_row = head.key_row + block;
    const int64_t seen = std::clamp<int64_t>(head.visible(0) - block, 0, keys);
    for (int64_t j = 0; j < seen; ++j) {
      scratch.scores[j] = dot_row(q, forward.k, key_row + j, head.kv_column, width);
      scratch.dscores[j] = dot_row(dy, forward.v, key_row + j, head.kv_column, width);
    }
    if (forward.bias) add_bias(forward, head, head.first_head, 0, block, seen, scratch.scores);
    differentiate_row(scratch.scores, scratch.dscores, seen, 0, dropout, dropout_scale, block, log_sum_exp, dy_dot_y);
    if (op.dbias) add_bias_gradient(op, head, part, head.first_head, 0, block, seen, scratch.dscores);
    for (int64_t j = seen; j < keys; ++j) scratch.scores[j] = scratch.dscores[j] = 0;
    for (int64_t j = 0; j < keys; ++j) {
      unpack_row(q, scratch.dscores[j], op.dk, key_row + j, head.kv_column, width);
      unpack_row(dy, scratch.scores[j], op.dv, key_row + j, head.kv_column, width);
    }
    with_element(forward.k.type, [&](auto of_k) {
      for (int64_t j = 0; j < seen; ++j) {
        const auto* k = forward.k.as<decltype(of_k)>() + (key_row + j) * forward.k.stride + head.kv_column;
        const Vec factor = set1(scratch.dscores[j]);
        for_columns(width, [&](int64_t c, int64_t lanes)
                               BRISK_INLINE { store(dq + c, fma(factor, load(k + c, lanes), load(dq + c))); });
      }
    });
  }
  unpack_row(dq, forward.shape.scale, op.dq, row, column, width);
}

}  // namespace

int64_t attention_backward_scratch(const AttentionForward& op, int64_t queries, int64_t keys) {
  const Head largest(op, queries, keys);
  int64_t bytes = BackwardScratch(largest, nullptr).bytes;
#if defined(__AVX512BF16__)
  if (all_bf16(op)) bytes = std::max(bytes, bf16_backward_scratch(largest));
#endif
  return bytes;
}

void attention_backward_task(const AttentionBackward& op, const AttentionTask& task, const AttentionTask* next,
                             void* memory) {
  const AttentionForward& forward = op.forward;
  const Head head(forward, task);
  const BackwardScratch scratch(head, memory);
  for (int64_t i = 0; i < head.queries && std::min(head.visible(i), head.keys) <= 0; ++i) {
    clear_row(op.dq, head.row + i, head.first_head * head.width, head.group * head.width);
  }

  BiasPart part;
  if (op.dbias) {
    part = bias_part(forward, task.sequence);
    for (int64_t g = 0; g < head.group; ++g) {
      float* sums = op.dbias_parts.f32() + (head.first_head + g) * op.dbias_parts.stride + part.first;
      for_columns(part.count, [&](int64_t c, int64_t lanes) BRISK_INLINE { store(sums + c, zero(), lanes); });
    }
  }
  if (head.queries == 1 && head.group == 1) return backward_single(op, head, part, scratch);
#if defined(__AVX512BF16__)
  const bool bf16_gradients = op.dy.type == DType::bf16 && op.dq.type == DType::bf16;
  if (all_bf16(forward) && !forward.bias && bf16_gradients && head.keys > kFewKeys)
    return bf16_backward_task(op, head, next, memory);
#endif
  ReadAhead ahead = read_ahead(op, next, head.group * head.queries / kQueryTile);
  for (int64_t block = 0; block < head.keys; block += kKeyBlock) {
    const int64_t keys = std::min(kKeyBlock, head.keys - block), row = head.key_row + block;
    pack_rows(forward.k, row, keys, head.kv_column, head.width, 1.0f, scratch.key_rows, head.padded);
    pack_rows(forward.v, row, keys, head.kv_column, head.width, 1.0f, scratch.value_rows, head.padded);
    pack_panels(scratch.key_rows, keys, head.padded, head.width, scratch.key_panels);
    pack_panels(scratch.value_rows, keys, head.padded, head.width, scratch.value_panels);
    for (int64_t i = 0; i < keys * head.padded; i += kLanes) {
      store(scratch.dkeys + i, zero());
      store(scratch.dvalues + i, zero());
    }
    for (int64_t g = 0; g < head.group; ++g) {
      for_each_tile(head, block, [&](const Tile& tile) {
        backward_tile(op, head, part, tile, g, scratch);
        ahead.step();
      });
    }
    for (int64_t j = 0; j < keys; ++j) {
      unpack_row(scratch.dkeys + j * head.padded, 1.0f, op.dk, row + j, head.kv_column, head.width);
      unpack_row(scratch.dvalues + j * head.padded, 1.0f, op.dv, row + j, head.kv_column, head.width);
    }
  }
}

}  // namespace brisk::BRISK_ISA
