#include "ops/tape_ops.h"

#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/embedding.h"
#include "ops/gated.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/rotary.h"
#include "ops/rows_copy.h"
#include "tensor/program.h"

namespace brisk {

namespace {

// Dropout is drawn while training alone; evaluation records none.
struct DropoutSite {
  double probability = 0;
  uint64_t site = 0;

  DropoutSite(Tape& tape, double p) : probability(tape.training() ? p : 0), site(p > 0 ? tape.next_site() : 0) {}
  Dropout at(const DeviceBatch& batch) const {
    if (probability <= 0) return {};
    return {static_cast<float>(probability), random_key({batch.seed, batch.step, site})};
  }
};

Value make_value(Tape& tape, Value like, int64_t cols, DType type, bool gradient) {
  ValueSpec spec = tape.spec(like);
  spec.cols = cols;
  spec.type = type;
  spec.gradient = gradient;
  spec.kept = false;
  return tape.add_value(spec);
}

class EmbeddingOp final : public Op {
 public:
  EmbeddingOp(int row_set, bool positions, DropoutSite dropout)
      : row_set_(row_set), positions_(positions), dropout_(dropout) {}
  OpFamily family() const override { return OpFamily::embedding; }
  std::string name() const override { return "embedding"; }
  void forward(OpRun& run) const override {
    EmbeddingForward op;
    op.tokens = run.set(row_set_).tokens;
    op.rows = run.set(row_set_).rows;
    op.table = run.master(0);
    if (positions_) op.positions = run.master(1);
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
    if (positions_) {
      op.dpositions = run.parameter_gradient(1);
      op.dpositions_adds = run.parameter_gradient_adds(1);
    }
    BRISK_RUN_OP(run, embedding_backward, op);
  }

 private:
  int row_set_;
  bool positions_;
  DropoutSite dropout_;
};

class LinearOp final : public Op {
 public:
  // Inputs: x, then the residual if any. Outputs: y, then the value before the activation if it is saved.
  LinearOp(std::string label, int row_set, const LinearOptions& options, DropoutSite dropout, bool saves_before)
      : label_(std::move(label)),
        row_set_(row_set),
        activation_(options.activation),
        has_bias_(options.bias != nullptr),
        has_residual_(static_cast<bool>(options.residual)),
        saves_before_(saves_before),
        dropout_(dropout) {}
  OpFamily family() const override { return OpFamily::linear; }
  std::string name() const override { return label_; }
  void forward(OpRun& run) const override {
    LinearForward op;
    op.x = run.input(0);
    op.weight = run.compute(0);
    if (has_bias_) op.bias = run.master(1);
    op.activation = activation_;
    if (saves_before_) op.before = run.output(1);
    op.dropout = dropout_.at(run.batch());
    op.rows = run.set(row_set_).rows;
    if (has_residual_) op.residual = run.input(1);
    op.y = run.output(0);
    BRISK_RUN_OP(run, linear_forward, op);
  }
  void backward(OpRun& run) const override {
    const Tensor dy = run.output_gradient(0);
    if (has_residual_) {
      const Tensor dresidual = run.input_gradient(1);
      if (dresidual) copy_rows(dy, dresidual, run.input_gradient_adds(1));
    }
    LinearBackward op;
    op.dy = dy;
    op.x = run.input(0);
    op.weight = run.compute(0);
    op.activation = activation_;
    if (saves_before_) op.before = run.output(1);
    op.dropout = dropout_.at(run.batch());
    op.rows = run.set(row_set_).rows;
    if (run.scratch_bytes() > 0) op.scratch = run.scratch(run.compute(0).type, dy.rows, dy.cols);
    op.dx = run.input_gradient(0);
    op.dx_adds = op.dx && run.input_gradient_adds(0);
    op.dweight = run.parameter_gradient(0);
    op.dweight_adds = run.parameter_gradient_adds(0);
    if (has_bias_) {
      op.dbias = run.parameter_gradient(1);
      op.dbias_adds = run.parameter_gradient_adds(1);
    }
    BRISK_RUN_OP(run, linear_backward, op);
  }

 private:
  std::string label_;
  int row_set_;
  Activation activation_;
  bool has_bias_, has_residual_, saves_before_;
  DropoutSite dropout_;
};

class NormOp final : public Op {
 public:
  // Outputs: y, then (training) the inverse deviation and, for layer norm, the mean.
  NormOp(std::string label, NormKind kind, bool has_bias, double epsilon, bool training)
      : label_(std::move(label)),
        kind_(kind),
        has_bias_(has_bias),
        epsilon_(static_cast<float>(epsilon)),
        training_(training) {}
  OpFamily family() const override { return OpFamily::norm; }
  std::string name() const override { return label_; }
  void forward(OpRun& run) const override {
    NormForward op;
    op.kind = kind_;
    op.epsilon = epsilon_;
    op.x = run.input(0);
    op.gain = run.master(0);
    if (has_bias_) op.bias = run.master(1);
    op.y = run.output(0);
    if (training_) op.rstd = run.output(1);
    if (training_ && kind_ == NormKind::layer) op.mean = run.output(2);
    BRISK_RUN_OP(run, norm_forward, op);
  }
  void backward(OpRun& run) const override {
    NormBackward op;
    op.kind = kind_;
    op.x = run.input(0);
    op.gain = run.master(0);
    op.rstd = run.output(1);
    if (kind_ == NormKind::layer) op.mean = run.output(2);
    op.dy = run.output_gradient(0);
    op.dx = run.input_gradient(0);
    op.dx_adds = run.input_gradient_adds(0);
    op.dgain = run.parameter_gradient(0);
    op.dgain_adds = run.parameter_gradient_adds(0);
    if (has_bias_) {
      op.dbias = run.parameter_gradient(1);
      op.dbias_adds = run.parameter_gradient_adds(1);
    }
    BRISK_RUN_OP(run, norm_backward, op);
  }

 private:
  std::string label_;
  NormKind kind_;
  bool has_bias_;
  float epsilon_;
  bool training_;
};

class GatedOp final : public Op {
 public:
  explicit GatedOp(Activation activation) : activation_(activation) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "gated"; }
  void forward(OpRun& run) const override {
    const GatedForward op{activation_, run.input(0), run.output(0)};
    BRISK_RUN_OP(run, gated_forward, op);
  }
  void backward(OpRun& run) const override {
    BRISK_CHECK(!run.input_gradient_adds(0), "the input of gated is read by nobody else");
    const GatedBackward op{activation_, run.input(0), run.output_gradient(0), run.input_gradient(0)};
    BRISK_RUN_OP(run, gated_backward, op);
  }

 private:
  Activation activation_;
};

class PointwiseOp final : public Op {
 public:
  PointwiseOp(Activation activation, double factor) : activation_(activation), factor_(static_cast<float>(factor)) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "pointwise"; }
  void forward(OpRun& run) const override {
    const PointwiseForward op{activation_, factor_, run.input(0), run.output(0)};
    BRISK_RUN_OP(run, pointwise_forward, op);
  }
  void backward(OpRun& run) const override {
    BRISK_CHECK(!run.input_gradient_adds(0), "the input of pointwise is read by nobody else");
    const Tensor x = activation_ == Activation::none ? Tensor{} : run.input(0);
    const PointwiseBackward op{activation_, factor_, x, run.output_gradient(0), run.input_gradient(0)};
    BRISK_RUN_OP(run, pointwise_backward, op);
  }

 private:
  Activation activation_;
  float factor_;
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
      append_to_cache(op.k, run.set(key_set_).rows, cache.begin, keys);
      append_to_cache(op.v, run.set(key_set_).rows, cache.begin, values);
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
  tape.record(std::move(node));
  return y;
}

std::string label_of(const Parameter* parameter) {
  const std::string& name = parameter->spec.name;
  return name.substr(0, name.find_last_of('.'));
}

}  // namespace

Value embedding(Tape& tape, int row_set, Parameter* table, Parameter* positions, double dropout) {
  const Value y = tape.add_value({.row_set = row_set, .cols = table->spec.cols, .type = DType::f32, .gradient = true});
  Node node;
  node.op = std::make_unique<EmbeddingOp>(row_set, positions != nullptr, DropoutSite(tape, dropout));
  node.outputs = {y};
  node.parameters = {table};
  if (positions != nullptr) node.parameters.push_back(positions);
  tape.record(std::move(node));
  return y;
}

Value linear(Tape& tape, Value x, Parameter* weight, const LinearOptions& options) {
  const ParameterSpec& spec = weight->spec;
  BRISK_CHECK(spec.cols == tape.spec(x).cols, "{}: {} columns against {}", spec.name, spec.cols, tape.spec(x).cols);
  const DType type = options.residual ? tape.spec(options.residual).type : tape.activation_type();
  const Value y = make_value(tape, x, spec.rows, type, true);
  const bool saves_before = tape.training() && options.activation != Activation::none;
  const DropoutSite dropout(tape, options.dropout);
  Node node;
  node.op = std::make_unique<LinearOp>(label_of(weight), tape.spec(x).row_set, options, dropout, saves_before);
  node.inputs = {x};
  node.input_in_backward = {spec.trained};  // only the weight's own gradient reads x
  node.outputs = {y};
  node.output_in_backward = {false};
  node.parameters = {weight};
  if (options.bias != nullptr) node.parameters.push_back(options.bias);
  if (options.residual) {
    node.inputs.push_back(options.residual);
    node.input_in_backward.push_back(false);
    node.residual = 1;
  }
  if (saves_before) {
    node.outputs.push_back(make_value(tape, x, spec.rows, tape.activation_type(), false));
    node.output_in_backward.push_back(true);
  }
  if (saves_before || dropout.probability > 0) {
    node.backward_scratch = tape.rows(tape.spec(x).row_set).rows * spec.rows * size_of(tape.activation_type());
  }
  tape.record(std::move(node));
  return y;
}

Value norm(Tape& tape, Value x, NormKind kind, Parameter* gain, Parameter* bias, double epsilon) {
  const Value y = make_value(tape, x, tape.spec(x).cols, tape.activation_type(), true);
  Node node;
  node.op = std::make_unique<NormOp>(label_of(gain), kind, bias != nullptr, epsilon, tape.training());
  node.inputs = {x};
  node.input_in_backward = {true};
  node.outputs = {y};
  node.output_in_backward = {false};
  node.parameters = {gain};
  if (bias != nullptr) node.parameters.push_back(bias);
  if (tape.training()) {
    node.outputs.push_back(make_value(tape, x, 1, DType::f32, false));
    node.output_in_backward.push_back(true);
    if (kind == NormKind::layer) {
      node.outputs.push_back(make_value(tape, x, 1, DType::f32, false));
      node.output_in_backward.push_back(true);
    }
  }
  tape.record(std::move(node));
  return y;
}

Value gated(Tape& tape, Value x, Activation activation) {
  const Value y = make_value(tape, x, tape.spec(x).cols / 2, tape.activation_type(), true);
  Node node;
  node.op = std::make_unique<GatedOp>(activation);
  node.inputs = {x};
  node.input_in_backward = {true};
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

Value pointwise(Tape& tape, Value x, Activation activation, double factor) {
  const Value y = make_value(tape, x, tape.spec(x).cols, tape.activation_type(), true);
  Node node;
  node.op = std::make_unique<PointwiseOp>(activation, factor);
  node.inputs = {x};
  node.input_in_backward = {activation != Activation::none};
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

Value self_attention(Tape& tape, Value qkv, const AttentionShape& shape, double dropout) {
  return record_attention(tape, qkv, qkv, false, shape, dropout);
}

Value cross_attention(Tape& tape, Value q, Value kv, const AttentionShape& shape, double dropout) {
  return record_attention(tape, q, kv, true, shape, dropout);
}

}  // namespace brisk
