#include "ops/attention/attention_tile_simd.h"

namespace brisk::BRISK_ISA {

namespace {

// Fewer queries than this do not repay the packing of the keys: generation, one query against a cache.
constexpr int64_t kFewQueries = 4;

struct ForwardScratch {
  ForwardScratch(const Head& head, void* memory) {
    Scratch scratch{memory};
    const int64_t block = std::min(kKeyBlock, round_up(head.keys, kPanel));
    key_panels = scratch.take(block * round_up(head.width, 4));
    key_rows = scratch.take((block + kLanes) * head.padded);
    value_rows = scratch.take(block * head.padded);
    query_rows = scratch.take(kQueryTile * head.padded);
    scores = scratch.take(std::max(kQueryTile * kTileStride, head.keys + kLanes));
    sums = scratch.take(head.group * head.queries * head.padded);
    largest = scratch.take(head.group * head.queries);
    total = scratch.take(head.group * head.queries);
    bytes = scratch.bytes();
  }
  float *key_panels, *key_rows, *value_rows;  // of the block
  float *query_rows, *scores;                 // of the tile
  float* sums;                                // [group, queries, padded]: sum of p v so far
  float *largest, *total;                     // [group, queries]: of the scores, of their powers
  int64_t bytes;
};

void forward_tile(const AttentionForward& op, const Head& head, const Tile& tile, int64_t g,
                  const ForwardScratch& scratch) {
  const int64_t query_head = head.first_head + g, at = g * head.queries + tile.first;
  float* sums = scratch.sums + at * head.padded;
  float *largest = scratch.largest + at, *total = scratch.total + at;
  const bool fresh = tile.block == 0;
  if (fresh) {
    for (int64_t i = 0; i < tile.rows; ++i) largest[i] = kLowest, total[i] = 0;
  }

  pack_rows(op.q, head.row + tile.first, tile.rows, query_head * head.width, head.width, op.shape.scale,
            scratch.query_rows, head.padded);
  tile_products(head, tile, scratch.query_rows, scratch.key_panels, scratch.scores);
  for (int64_t i = 0; op.bias && i < tile.rows; ++i) {
    add_bias(op, head, query_head, tile.first + i, tile.block, tile.limit(i), scratch.scores + i * kTileStride);
  }
  for (int64_t i = 0; i < tile.rows; i += kGroupRows) {
    const int64_t limit = tile.group_limit(i), rows = tile.group_rows(i);
    for (int64_t r = i; r < i + rows; ++r) {
      const RowDropout dropout(op, query_head, head.row + tile.first + r);
      const float correction = soften_row(scratch.scores + r * kTileStride, tile.limit(r), round_up(limit, kLanes),
                                          dropout, tile.block, largest[r], total[r]);
      if (fresh || correction == 1.0f) continue;
      float* sum = sums + r * head.padded;
      for (int64_t c = 0; c < head.padded; c += kLanes) store(sum + c, load(sum + c) * set1(correction));
    }
    product_of_group(rows, head.vectors, limit, {scratch.scores + i * kTileStride, kTileStride, 1},
                     {scratch.value_rows, head.padded, kPanel}, sums + i * head.padded, head.padded, !fresh);
  }

  if (!tile.last_of(head)) return;
  const float dropout_scale = op.dropout.active() ? op.dropout.scale() : 1.0f;
  for (int64_t i = 0; i < tile.rows; ++i) {
    const int64_t row = head.row + tile.first + i;
    unpack_row(sums + i * head.padded, total[i] > 0 ? dropout_scale / total[i] : 0.0f, op.y, row,
               query_head * head.width, head.width);
    if (op.log_sum_exp) {
      op.log_sum_exp.f32()[row * op.log_sum_exp.stride + query_head] =
          total[i] > 0 ? largest[i] + __builtin_logf(total[i]) : -__builtin_inff();
    }
  }
}

// A query that sees no key at all answers 0.
void answer_nothing(const AttentionForward& op, const Head& head, int64_t query) {
  const int64_t row = head.row + query;
  for (int64_t h = head.first_head; h < head.first_head + head.group; ++h) {
    with_element(op.y.type, [&](auto of_y) {
      auto* y = op.y.as<decltype(of_y)>() + row * op.y.stride + h * head.width;
      for_columns(head.width, [&](int64_t c, int64_t lanes) BRISK_INLINE { store(y + c, zero(), lanes); });
    });
    if (op.log_sum_exp) op.log_sum_exp.f32()[row * op.log_sum_exp.stride + h] = -__builtin_inff();
  }
}

// One query, straight from the rows of k and v: nothing is packed.
void forward_single(const AttentionForward& op, const Head& head, int64_t query, int64_t query_head,
                    const ForwardScratch& scratch) {
  const int64_t row = head.row + query, limit = std::min(head.visible(query), head.keys);
  float* scores = scratch.scores;
  float* q = scratch.query_rows;
  pack_rows(op.q, row, 1, query_head * head.width, head.width, op.shape.scale, q, head.padded);
  with_element(op.k.type, [&](auto of_k) {
    for (int64_t j = 0; j < limit; ++j) {
      const auto* k = op.k.as<decltype(of_k)>() + (head.key_row + j) * op.k.stride + head.kv_column;
      Vec sum = zero();
      for_columns(head.width,
                  [&](int64_t c, int64_t lanes) BRISK_INLINE { sum = fma(load(q + c), load(k + c, lanes), sum); });
      scores[j] = reduce_add(sum);
    }
  });
  if (op.bias) add_bias(op, head, query_head, query, 0, limit, scores);
  float largest = kLowest, total = 0;
  soften_row(scores, limit, 0, RowDropout(op, query_head, row), 0, largest, total);
  float* sums = scratch.sums;
  for (int64_t c = 0; c < head.padded; c += kLanes) store(sums + c, zero());
  with_element(op.v.type, [&](auto of_v) {
    for (int64_t j = 0; j < limit; ++j) {
      const auto* v = op.v.as<decltype(of_v)>() + (head.key_row + j) * op.v.stride + head.kv_column;
      for_columns(head.width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
        store(sums + c, fma(set1(scores[j]), load(v + c, lanes), load(sums + c)));
      });
    }
  });
  const float dropout_scale = op.dropout.active() ? op.dropout.scale() : 1.0f;
  unpack_row(sums, dropout_scale / total, op.y, row, query_head * head.width, head.width);
  if (op.log_sum_exp) {
    op.log_sum_exp.f32()[row * op.log_sum_exp.stride + query_head] = largest + __builtin_logf(total);
  }
}

}  // namespace

int64_t attention_forward_scratch(const AttentionForward& op, int64_t queries, int64_t keys) {
  const Head largest(op, queries, keys);
  int64_t bytes = ForwardScratch(largest, nullptr).bytes;
#if defined(__AVX512BF16__)
  if (all_bf16(op)) bytes = std::max(bytes, bf16_forward_scratch(largest));
#endif
  return bytes;
}

void attention_forward_task(const AttentionForward& op, const AttentionTask& task, const AttentionTask* next,
                            void* memory) {
  const Head head(op, task);
  const ForwardScratch scratch(head, memory);
  int64_t blind = 0;  // causal, with more queries than keys: the first ones see nothing
  while (blind < head.queries && std::min(head.visible(blind), head.keys) <= 0) answer_nothing(op, head, blind++);

  if (head.queries < kFewQueries) {
    for (int64_t g = 0; g < head.group; ++g) {
      for (int64_t i = blind; i < head.queries; ++i) forward_single(op, head, i, head.first_head + g, scratch);
    }
    return;
  }
#if defined(__AVX512BF16__)
  if (all_bf16(op) && !op.bias && head.keys > kFewKeys) return bf16_forward_task(op, head, next, memory);
#endif
  ReadAhead ahead = read_ahead(op, next, head.group * head.queries / kQueryTile);
  for (int64_t block = 0; block < head.keys; block += kKeyBlock) {
    const int64_t keys = std::min(kKeyBlock, head.keys - block), row = head.key_row + block;
    pack_rows(op.k, row, keys, head.kv_column, head.width, 1.0f, scratch.key_rows, head.padded);
    pack_panels(scratch.key_rows, keys, head.padded, head.width, scratch.key_panels);
    pack_rows(op.v, row, keys, head.kv_column, head.width, 1.0f, scratch.value_rows, head.padded);
    for (int64_t g = 0; g < head.group; ++g) {
      for_each_tile(head, block, [&](const Tile& tile) {
        forward_tile(op, head, tile, g, scratch);
        ahead.step();
      });
    }
  }
}

}  // namespace brisk::BRISK_ISA
