// Ops that ask where a row stands: in which sequence, at which place, picked from where.
#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/embedding/embedding.h"
#include "ops/rotary/rotary.h"
#include "ops/rows/pick_rows.h"
#include "ops/rows/rows_copy.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class EmbeddingOp final : public Op {
 public:
  // Parameters: the table, then positions and types where there are any.
  EmbeddingOp(int row_set, const EmbeddingOptions& options, DropoutSite dropout)
      : row_set_(row_set),
        positions_(options.positions != nullptr ? 1 : -1),
        types_(options.types == nullptr       ? -1
               : options.positions != nullptr ? 2
                                              : 1),
        position_offset_(options.position_offset),
        several_types_(options.types != nullptr && options.types->spec.rows > 1),
        dropout_(dropout) {}
  OpFamily family() const override { return OpFamily::embedding; }
  std::string name() const override { return "embedding"; }
  void forward(OpRun& run) const override {
    EmbeddingForward op;
    op.tokens = run.set(row_set_).tokens;
    op.rows = run.set(row_set_).rows;
    op.table = run.master(0);
    if (positions_ >= 0) op.positions = run.master(positions_);
    op.position_offset = position_offset_;
    if (types_ >= 0) op.type_table = run.master(types_);
    if (several_types_) op.types = run.set(row_set_).types;
    op.dropout = dropout_.at(run.batch());
    op.y = run.output(0);
    BRISK_RUN_OP(run, embedding_forward, op);
  }
  void backward(OpRun& run) const override {
    EmbeddingBackward op;
    op.tokens = run.set(row_set_).tokens;
    op.rows = run.set(row_set_).rows;
    op.dropout = dropout_.at(run.batch());
    op.dy = run.output_gradient(0);
    op.dtable = run.parameter_gradient(0);
    op.dtable_adds = run.parameter_gradient_adds(0);
    if (positions_ >= 0) {
      op.dpositions = run.parameter_gradient(positions_);
      op.dpositions_adds = run.parameter_gradient_adds(positions_);
    }
    op.position_offset = position_offset_;
    if (types_ >= 0) {
      op.dtypes = run.parameter_gradient(types_);
      op.dtypes_adds = run.parameter_gradient_adds(types_);
    }
    if (several_types_) op.types = run.set(row_set_).types;
    BRISK_RUN_OP(run, embedding_backward, op);
  }

 private:
  int row_set_;
  int positions_, types_;  // their places among the parameters; -1: none
  int64_t position_offset_;
  bool several_types_;  // with one type, what the batch says of them means nothing
  DropoutSite dropout_;
};

class InputRowsOp final : public Op {
 public:
  explicit InputRowsOp(int row_set) : row_set_(row_set) {}
  OpFamily family() const override { return OpFamily::embedding; }
  std::string name() const override { return "input_rows"; }
  void forward(OpRun& run) const override {
    Tensor rows = run.output(0);
    rows.data = const_cast<void*>(run.set(row_set_).inputs);
    BRISK_CHECK(rows.data != nullptr, "the micro-batch has no inputs");
    rows.stride = rows.cols;
    BRISK_RUN_OP(run, copy_rows, rows, run.output(0), false);
  }
  void backward(OpRun&) const override { BRISK_CHECK(false, "rows from outside have no gradient"); }

 private:
  int row_set_;
};

class RotaryOp final : public Op {
 public:
  RotaryOp(int row_set, int64_t rotated, int64_t head_width, double theta)
      : row_set_(row_set), rotated_(rotated), head_width_(head_width), theta_(static_cast<float>(theta)) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "rotary"; }
  void forward(OpRun& run) const override { turn(run, run.input(0), run.output(0), false); }
  void backward(OpRun& run) const override {
    BRISK_CHECK(!run.input_gradient_adds(0), "the input of rotary is read by nobody else");
    turn(run, run.output_gradient(0), run.input_gradient(0), true);
  }

 private:
  void turn(OpRun& run, const Tensor& x, const Tensor& y, bool inverse) const {
    const Rotary op{x, y, run.set(row_set_).rows, rotated_, head_width_, theta_, inverse};
    BRISK_RUN_OP(run, rotary, op);
  }
  int row_set_;
  int64_t rotated_, head_width_;
  float theta_;
};

class PickRowsOp final : public Op {
 public:
  explicit PickRowsOp(int to_set) : to_set_(to_set) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "pick_rows"; }
  void forward(OpRun& run) const override {
    const PickRowsForward op{run.input(0), source(run), run.output(0)};
    BRISK_RUN_OP(run, pick_rows_forward, op);
  }
  void backward(OpRun& run) const override {
    const PickRowsBackward op{run.output_gradient(0), source(run), run.input_gradient(0), run.input_gradient_adds(0)};
    BRISK_RUN_OP(run, pick_rows_backward, op);
  }

 private:
  const int32_t* source(const OpRun& run) const {
    const DeviceBatch::Set& set = run.set(to_set_);
    BRISK_CHECK(set.source != nullptr || set.rows.rows == 0, "row set {} says not where its rows come from", to_set_);
    return set.source;
  }
  int to_set_;
};

class AttentionOp final : public Op {
 public:
  // Inputs: qkv, or q and kv. Outputs: y, then (training) the log-sum-exp. `number` is the op's place in a cache.
  AttentionOp(int query_set, int key_set, bool cross, const AttentionShape& shape, DropoutSite dropout, bool training,
              size_t number)
      : query_set_(query_set),
        key_set_(key_set),
        cross_(cross),
        shape_(shape),
        dropout_(dropout),
        training_(training),
        number_(number) {}
  OpFamily family() const override { return OpFamily::attention; }
  std::string name() const override { return cross_ ? "cross_attention" : "self_attention"; }
  void forward(OpRun& run) const override {
    AttentionForward op = arguments(run);
    if (run.batch().cache != nullptr && !cross_) {
      const KeyValueCache& cache = *run.batch().cache;
      const Tensor keys = cache.keys.at(number_), values = cache.values.at(number_);
      BRISK_RUN_OP(run, append_to_cache, op.k, run.set(key_set_).rows, cache.begin, keys);
      BRISK_RUN_OP(run, append_to_cache, op.v, run.set(key_set_).rows, cache.begin, values);
      op.k = keys;
      op.v = values;
      op.k_begin = cache.begin;
      op.k_end = cache.end;
      op.longest_keys = cache.longest;
    }
    BRISK_RUN_OP(run, attention_forward, op);
  }
  void backward(OpRun& run) const override {
    AttentionBackward op;
    op.forward = arguments(run);
    op.dy = run.output_gradient(0);
    const int64_t q_cols = shape_.heads * shape_.head_width, kv_cols = shape_.kv_heads * shape_.head_width;
    const Tensor dq = run.input_gradient(0);
    BRISK_CHECK(!run.input_gradient_adds(0), "the input of attention is read by nobody else");
    op.dq = dq.columns(0, q_cols);
    const Tensor dkv = cross_ ? run.input_gradient(1) : dq;
    BRISK_CHECK(!cross_ || !run.input_gradient_adds(1), "the input of attention is read by nobody else");
    const int64_t first = cross_ ? 0 : q_cols;
    op.dk = dkv.columns(first, kv_cols);
    op.dv = dkv.columns(first + kv_cols, kv_cols);
    BRISK_RUN_OP(run, attention_backward, op);
  }

 private:
  AttentionForward arguments(OpRun& run) const {
    const int64_t q_cols = shape_.heads * shape_.head_width, kv_cols = shape_.kv_heads * shape_.head_width;
    AttentionForward op;
    op.shape = shape_;
    op.q = run.input(0).columns(0, q_cols);
    const Tensor kv = cross_ ? run.input(1) : run.input(0);
    const int64_t first = cross_ ? 0 : q_cols;
    op.k = kv.columns(first, kv_cols);
    op.v = kv.columns(first + kv_cols, kv_cols);
    op.queries = run.set(query_set_).rows;
    const RowSet& keys = run.set(key_set_).rows;
    op.k_begin = keys.starts;
    op.k_end = keys.starts + 1;
    op.longest_keys = keys.longest;
    op.dropout = dropout_.at(run.batch());
    op.y = run.output(0);
    if (training_) op.log_sum_exp = run.output(1);
    return op;
  }
  int query_set_, key_set_;
  bool cross_;
  AttentionShape shape_;
  DropoutSite dropout_;
  bool training_;
  size_t number_;
};

Value record_attention(Tape& tape, Value q, Value kv, bool cross, const AttentionShape& shape, double dropout) {
  const int64_t width = shape.heads * shape.head_width;
  const Value y = make_value(tape, q, width, tape.activation_type(), true);
  size_t number = 0;
  for (const Node& node : tape.nodes()) number += node.op->name() == "self_attention" ? 1 : 0;
  Node node;
  node.op = std::make_unique<AttentionOp>(tape.spec(q).row_set, tape.spec(kv).row_set, cross, shape,
                                          DropoutSite(tape, dropout), tape.training(), number);
  node.inputs = cross ? std::vector<Value>{q, kv} : std::vector<Value>{q};
  node.outputs = {y};
  if (tape.training()) node.outputs.push_back(make_value(tape, q, shape.heads, DType::f32, false));
  node.input_in_backward.assign(node.inputs.size(), true);
  node.output_in_backward.assign(node.outputs.size(), true);
  node.changes_product = dropout > 0;
  tape.record(std::move(node));
  return y;
}

}  // namespace

Value embedding(Tape& tape, int row_set, Parameter* table, const EmbeddingOptions& options) {
  const Value y = tape.add_value({.row_set = row_set, .cols = table->spec.cols, .type = DType::f32, .gradient = true});
  Node node;
  node.op = std::make_unique<EmbeddingOp>(row_set, options, DropoutSite(tape, options.dropout));
  node.outputs = {y};
  node.parameters = {table};
  if (options.positions != nullptr) node.parameters.push_back(options.positions);
  if (options.types != nullptr) node.parameters.push_back(options.types);
  tape.record(std::move(node));
  return y;
}

Value input_rows(Tape& tape, int row_set, int64_t cols) {
  const Value y = tape.add_value({.row_set = row_set, .cols = cols, .type = tape.activation_type()});
  tape.matrices(row_set).inputs = cols;
  Node node;
  node.op = std::make_unique<InputRowsOp>(row_set);
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

Value rotary(Tape& tape, Value x, int64_t rotated, int64_t head_width, double theta) {
  const Value y = make_value(tape, x, tape.spec(x).cols, tape.spec(x).type, true);
  Node node;
  node.op = std::make_unique<RotaryOp>(tape.spec(x).row_set, rotated, head_width, theta);
  node.inputs = {x};
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

Value pick_rows(Tape& tape, Value x, int to_set) {
  ValueSpec spec = tape.spec(x);
  spec.row_set = to_set;
  spec.gradient = true;
  spec.kept = false;
  const Value y = tape.add_value(spec);
  Node node;
  node.op = std::make_unique<PickRowsOp>(to_set);
  node.inputs = {x};
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

Value self_attention(Tape& tape, Value qkv, const AttentionShape& shape, double dropout) {
  return record_attention(tape, qkv, qkv, false, shape, dropout);
}

Value cross_attention(Tape& tape, Value q, Value kv, const AttentionShape& shape, double dropout) {
  return record_attention(tape, q, kv, true, shape, dropout);
}

}  // namespace brisk
