// The ops as a model sees them: each records one node on the tape and returns its output. What each computes is said in
// the header of its own (ops/linear.h, ...).
#pragma once

#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/norm.h"
#include "tensor/tape.h"

namespace brisk {

struct LinearOptions {
  Parameter* bias = nullptr;
  Activation activation = Activation::none;
  double dropout = 0;
  Value residual{};  // added to the result, which is then f32 like the residual stream
};

struct LossOptions {
  double label_smoothing = 0;
};

// What the host reads after a run. sums: [1, 3] sum of losses, correct rows, valid rows.
struct LossValues {
  Value row_losses;  // [N, 1]
  Value sums;
};

// table[token] + positions[position]; `positions` may be none. The start of a residual stream: f32.
Value embedding(Tape& tape, int row_set, Parameter* table, Parameter* positions, double dropout);
Value linear(Tape& tape, Value x, Parameter* weight, const LinearOptions& options = {});
Value norm(Tape& tape, Value x, NormKind kind, Parameter* gain, Parameter* bias, double epsilon);
Value gated(Tape& tape, Value x, Activation activation);
// factor * activation(x)
Value pointwise(Tape& tape, Value x, Activation activation, double factor);
// Turns the first `rotated` columns of x, heads of width `head_width`.
Value rotary(Tape& tape, Value x, int64_t rotated, int64_t head_width, double theta);
// qkv: [N, (heads + 2 kv_heads) K], queries first, then keys, then values.
Value self_attention(Tape& tape, Value qkv, const AttentionShape& shape, double dropout);
// q: [Nq, heads K]; kv: [Nk, 2 kv_heads K] of another row set with as many sequences.
Value cross_attention(Tape& tape, Value q, Value kv, const AttentionShape& shape, double dropout);
LossValues linear_cross_entropy(Tape& tape, Value x, Parameter* weight, const LossOptions& options);
// The last row of each sequence times W^T: [S, V] f32, kept; for generation.
Value last_row_logits(Tape& tape, Value x, Parameter* weight);
// All rows times W^T: [N, V] f32, kept. For tests and imports alone: training never holds [N, V].
Value all_logits(Tape& tape, Value x, Parameter* weight);

}  // namespace brisk
