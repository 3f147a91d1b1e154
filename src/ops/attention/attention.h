// attention: softmax(scale Q K^T) V per sequence and head, over ragged rows; T x T is never stored.
//
//   Value y = self_attention(tape, qkv, {.heads = 12, .kv_heads = 12, .head_width = 64}, /*dropout=*/0.1);
//
// Query sequence s is rows [starts[s], starts[s + 1]) of `queries`; its keys are rows [k_begin[s], k_end[s]) of k and
// v: the same rows for self-attention, the encoder's for cross-attention, a cache's for generation. Causal: with Tq
// queries and Tk keys, query i sees keys 0 .. Tk - Tq + i. Query head h reads key/value head h / (heads / kv_heads). q,
// k, v, y are column ranges of wider matrices (stride > cols). Saved for backward: q, k, v, y and log_sum_exp. Dropout
// of the probabilities: row key random_row_key(random_key({key, head}), sequence, query position), column = key
// position. A row may also tell the entropy of its probabilities averaged over the heads, which has a gradient. A bias of
// each head and distance may be added to the scores; ALiBi or a window would be further members here.
#pragma once

#include "ops/dropout.h"
#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

struct AttentionShape {
  int64_t heads = 1;        // H
  int64_t kv_heads = 1;     // divides H
  int64_t head_width = 64;  // K
  float scale = 0.125f;
  bool causal = true;
};

struct AttentionForward {
  AttentionShape shape;
  Tensor q;                          // [Nq, H K]
  Tensor k, v;                       // [Nk, kv_heads K]
  RowSet queries;                    // its starts, sequences, longest; position and sequence are for dropout alone
  const int32_t* k_begin = nullptr;  // [S]
  const int32_t* k_end = nullptr;    // [S]
  int64_t longest_keys = 0;          // the largest k_end - k_begin
  Dropout dropout;
  Tensor y;            // [Nq, H K] out
  Tensor log_sum_exp;  // [Nq, H] f32 out, or none without gradient
  Tensor entropy;      // [Nq, 1] f32 out, or none
  // [H, 2 T - 1] f32, or none: column T - 1 + d is added to the score, after its scale, of the key d after the query's own,
  // which is key i, or where it is causal Tk - Tq + i. T is at least the longest keys. Not with an entropy, nor where query
  // heads share keys.
  Tensor bias;
};

struct AttentionBackward {
  AttentionForward forward;  // as it was, y and log_sum_exp filled
  Tensor dy;                 // [Nq, H K]
  Tensor dq;                 // [Nq, H K] out, overwritten
  Tensor dk, dv;             // [Nk, kv_heads K] out, overwritten; rows of no sequence are left alone
  Tensor dentropy;           // [Nq, 1] f32; given exactly where there is an entropy
  Tensor dbias;              // as the bias, out, overwritten; given exactly where there is one, and so is
  Tensor dbias_parts;        // [H, Nq + Nk] f32 scratch: what each sequence adds to it
};

// The key of the first of `queries` queries among `keys` keys.
BRISK_HOST_DEVICE inline int64_t first_position(const AttentionShape& shape, int64_t queries, int64_t keys) {
  return shape.causal ? keys - queries : 0;
}

// Where sequence s has its part of dbias_parts: a column for each distance there is.
struct BiasPart {
  int64_t first = 0, count = 0;
  int64_t middle = 0;  // the column of distance 0
};
BRISK_HOST_DEVICE inline BiasPart bias_part(const AttentionForward& op, int64_t s) {
  const int64_t queries = op.queries.starts[s + 1] - op.queries.starts[s], keys = op.k_end[s] - op.k_begin[s];
  const int64_t first = int64_t{op.queries.starts[s]} + op.k_begin[s];
  return {first, queries > 0 && keys > 0 ? queries + keys - 1 : 0,
          first + first_position(op.shape, queries, keys) + queries - 1};
}

// A row's entropy is -sum over keys of w ln(w + this), w the mean over the heads of its probabilities after dropout.
constexpr float kEntropyEpsilon = 1e-9f;

// The draws of one head's probabilities: row = query, column = key.
BRISK_HOST_DEVICE inline Dropout attention_dropout(const Dropout& dropout, int64_t head) {
  return {dropout.probability, random_key({dropout.drawn_key(), static_cast<uint64_t>(head)})};
}

namespace ref {
void attention_forward(const AttentionForward& op);
void attention_backward(const AttentionBackward& op);
}  // namespace ref
namespace cpu {
void attention_forward(const AttentionForward& op);
void attention_backward(const AttentionBackward& op);
}  // namespace cpu
namespace cuda {
void attention_forward(const AttentionForward& op);
void attention_backward(const AttentionBackward& op);
}  // namespace cuda

}  // namespace brisk
