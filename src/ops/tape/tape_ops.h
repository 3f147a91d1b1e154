// The ops as a model sees them: each records one node on the tape and returns its output. What each computes is said in
// the header of its own (ops/linear/linear.h, ...).
//
//   Value h = embedding(tape, 0, table);
//   h = linear(tape, norm(tape, h, NormKind::rms, gain, nullptr, 1e-5), weight, {.residual = h});
//   LossValues loss = linear_cross_entropy(tape, h, table, {});
#pragma once

#include <cstdint>
#include <vector>

#include "ops/activation/activation.h"
#include "ops/attention/attention.h"
#include "ops/grid_attention/grid_attention.h"
#include "ops/grid_attention/window_bias.h"
#include "ops/norm/norm.h"
#include "ops/pixels/pixel_rows.h"
#include "tensor/tape.h"

namespace brisk {

struct LinearOptions {
  Parameter* bias = nullptr;
  Activation activation = Activation::none;
  double dropout = 0;
  Value residual{};       // added to the result, which then has the residual's type
  int64_t first_row = 0;  // use rows [first_row, first_row + rows) of the weight and the bias alone: of Q, K and V ...
  int64_t rows = 0;  // ... stacked in one parameter, say; 0: all. A bias with no more numbers than these rows is theirs
};

struct GroupedLinearOptions {
  int64_t groups = 1;
  int64_t parts = 1;                       // outputs that a group has several of: queries, keys, values
  int64_t matrix_cols = 0, tile_cols = 0;  // a group's inputs are a tile of the row as a matrix; 0: neighbours
};

struct EmbeddingOptions {
  Parameter* positions = nullptr;  // rows [position_offset, ...) for positions 0, 1, ...
  int64_t position_offset = 0;
  Parameter* types = nullptr;  // a row for each token type
  double scale = 1;            // of the table's rows
  double dropout = 0;
};

struct LossOptions {
  double label_smoothing = 0;
  Parameter* bias = nullptr;  // of the logits
  double soft_weight = 0;     // > 0: while training, the row set's soft targets take this share of the loss ...
  double temperature = 1;     // ... at this temperature
};

// What the host reads after a run. sums: [1, 4] sum of weight x loss, correct rows, valid rows, sum of the valid rows'
// weights.
struct LossValues {
  Value row_losses;  // [N, 1], not weighted
  Value sums;
};

// scale table[token] + positions[position] + types[type]. f32.
Value embedding(Tape& tape, int row_set, Parameter* table, const EmbeddingOptions& options = {});
// Rows that come with the micro-batch (DeviceBatch::Set::inputs), of the tape's activation type; they have no gradient.
Value input_rows(Tape& tape, int row_set, int64_t cols);
// The patches of images that come with the micro-batch (DeviceBatch::Set::pixels), of the tape's activation type; they have no
// gradient.
Value pixel_rows(Tape& tape, int row_set, const PixelRowsOptions& options);
Value linear(Tape& tape, Value x, Parameter* weight, const LinearOptions& options = {});
// Each of the groups of columns of x times a weight of its own (ops/grouped_linear/grouped_linear.h). The weight [parts
// groups outputs, inputs of a group] is f32 in every precision: it does not `multiply`.
Value grouped_linear(Tape& tape, Value x, Parameter* weight, Parameter* bias, const GroupedLinearOptions& options);
Value norm(Tape& tape, Value x, NormKind kind, Parameter* gain, Parameter* bias, double epsilon, double dropout = 0);
Value gated(Tape& tape, Value x, Activation activation);
// factor * activation(x)
Value pointwise(Tape& tape, Value x, Activation activation, double factor);
// Turns the first `rotated` columns of x, heads of width `head_width`.
Value rotary(Tape& tape, Value x, int64_t rotated, int64_t head_width, double theta);
// What self_attention adds to the scores of keys at each distance from their query (ops/attention/relative_bias.h), [H, 2
// longest - 1], from a table [buckets, H].
struct RelativeBiasOptions {
  int64_t distance = 128;
  bool causal = false;
};
Value relative_bias(Tape& tape, Parameter* table, const RelativeBiasOptions& options, int64_t longest);
// qkv: [N, (heads + 2 kv_heads) K], queries first, then keys, then values. bias: of relative_bias(), or none.
Value self_attention(Tape& tape, Value qkv, const AttentionShape& shape, double dropout, Value bias = {});
// And the entropy of each row's weights, averaged over the heads after dropout: [N, 1] f32.
struct AttentionWithEntropy {
  Value y, entropy;
};
AttentionWithEntropy self_attention_with_entropy(Tape& tape, Value qkv, const AttentionShape& shape, double dropout);
// Within the regions of a grid: qkv is as above, bias of window_bias(), or none.
Value grid_attention(Tape& tape, Value qkv, const GridAttentionShape& shape, Value bias, double dropout);
// [H, P P], from a table [window_bias_rows(windows), H] (ops/grid_attention/window_bias.h).
Value window_bias(Tape& tape, Parameter* table, const GridWindows& windows);
// q: [Nq, heads K]; kv: [Nk, 2 kv_heads K] of another row set with as many sequences.
Value cross_attention(Tape& tape, Value q, Value kv, const AttentionShape& shape, double dropout);
// The same of keys and values in the memory of a KeyValueCache, those of `layer`; for generation. `longest`: rows of the
// memory that a sequence sees, at most.
Value memory_attention(Tape& tape, Value q, const AttentionShape& shape, int64_t layer, int64_t longest);

// General ops, for a block that no fused op computes. The result has the type of the first operand. Where an operand has
// fewer columns than x, each of them stands for as many neighbouring columns of x: [N, 1] is one number for each row,
// [N, heads] one for each head. A parameter is [1, D], the same for all rows.
Value add(Tape& tape, Value x, Value y);
Value add(Tape& tape, Value x, Parameter* vector);
Value multiply(Tape& tape, Value x, Value y);
Value multiply(Tape& tape, Value x, Parameter* vector);
// x + share * (target - x); share: [N, groups].
Value interpolate(Tape& tape, Value x, Value target, Value share);
// [N, groups]: each is the sum of D / groups neighbouring columns of x.
Value sum_columns(Tape& tape, Value x, int64_t groups = 1);
// Columns [first, first + count) of x.
Value columns(Tape& tape, Value x, int64_t first, int64_t count);
// The columns of all parts, one after the other.
Value concatenate(Tape& tape, const std::vector<Value>& parts);
// x in another type: in f32, which a residual stream is that begins with a norm or a product; in the tape's activation type, in
// which rows are kept that come back as input_rows().
Value convert(Tape& tape, Value x, DType type);
// Of each row; or of each of its groups of D / groups neighbouring columns.
Value softmax(Tape& tape, Value x, int64_t groups = 1);
Value log_softmax(Tape& tape, Value x, int64_t groups = 1);

LossValues linear_cross_entropy(Tape& tape, Value x, Parameter* weight, const LossOptions& options);
// The rows of x that make up row set `to_set`: its row r is row source[r] of x. Backward adds them up where they came
// from.
Value pick_rows(Tape& tape, Value x, int to_set);
// [N / 4, 4 D] of row set `to_set`, from a grid of `height` x `width` rows for each sequence (ops/rows/merge_grid.h).
Value merge_grid(Tape& tape, Value x, int to_set, int64_t height, int64_t width);
// A row for each sequence, which is all that row set `to_set` has of it: the mean of its rows from `first` on.
Value mean_rows(Tape& tape, Value x, int to_set, int64_t first);
// The last row of each sequence times W^T, plus the bias if there is one: [S, V] f32, read back; for generation.
Value last_row_logits(Tape& tape, Value x, Parameter* weight, Parameter* bias = nullptr);
// All rows times W^T, plus the bias if there is one: [rows, V] f32, read back. For few classes, tests and imports:
// training never holds [N, V].
Value logits(Tape& tape, Value x, Parameter* weight, Parameter* bias = nullptr);

}  // namespace brisk
