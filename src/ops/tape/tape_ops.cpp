// Ops that take each row for itself.
#include "ops/tape/tape_ops.h"

#include <utility>

#include "base/error.h"
#include "ops/activation/gated.h"
#include "ops/activation/pointwise.h"
#include "ops/backend.h"
#include "ops/linear/linear.h"
#include "ops/norm/norm.h"
#include "ops/rows/rows_copy.h"
#include "ops/tape/tape_record.h"
#include "tensor/program.h"

namespace brisk {

namespace {

class LinearOp final : public Op {
 public:
  // Inputs: x, then the residual if any. Outputs: y, then the value before the activation if it is saved.
  LinearOp(std::string label, int row_set, const LinearOptions& options, DropoutSite dropout, bool saves_before,
           int kept_output)
      : label_(std::move(label)),
        row_set_(row_set),
        activation_(options.activation),
        has_bias_(options.bias != nullptr),
        has_residual_(static_cast<bool>(options.residual)),
        saves_before_(saves_before),
        kept_output_(kept_output),
        first_row_(options.first_row),
        rows_(options.rows),
        dropout_(dropout) {}
  OpFamily family() const override { return OpFamily::linear; }
  std::string name() const override { return label_; }
  void forward(OpRun& run) const override {
    LinearForward op;
    op.x = run.input(0);
    op.weight = weight_part(run.compute(0));
    if (has_bias_) op.bias = bias_part(run.master(1));
    if (has_bias_) op.bias_copy = bias_part(run.copy(1));
    op.activation = activation_;
    if (saves_before_) op.before = run.output(1);
    op.dropout = dropout_.at(run.batch());
    op.rows = run.set(row_set_).rows;
    if (has_residual_) op.residual = run.input(1);
    op.y = run.output(0);
    op.products = run.products();
    if (kept_output_ >= 0) op.kept = run.output(kept_output_);
    BRISK_RUN_OP(run, linear_forward, op);
  }
  void backward(OpRun& run) const override {
    const Tensor dy = run.output_gradient(0);
    if (has_residual_) {
      const Tensor dresidual = run.input_gradient(1);
      if (dresidual) BRISK_RUN_OP(run, copy_rows, dy, dresidual, run.input_gradient_adds(1));
    }
    LinearBackward op;
    const Tensor handed = run.handed_gradient();
    op.dy = handed ? handed : dy;
    op.x = run.input(0);
    op.weight = weight_part(run.compute(0));
    const bool passed = run.output_passed_gelu();  // dy is the gradient before the activation already
    if (!passed) op.activation = activation_;
    if (saves_before_ && !passed) op.before = run.output(1);
    if (!handed) op.dropout = dropout_.at(run.batch());
    op.rows = run.set(row_set_).rows;
    if (run.scratch_bytes() > 0 && !passed && !handed) op.scratch = run.scratch(run.compute(0).type, dy.rows, dy.cols);
    op.dx = run.input_gradient(0);
    op.dx_adds = op.dx && run.input_gradient_adds(0);
    if (op.dx) op.dx_gelu = run.input_gelu(0);
    op.dweight = weight_part(run.parameter_gradient(0));
    op.dweight_adds = run.parameter_gradient_adds(0);
    if (has_bias_ && !handed) {
      op.dbias = bias_part(run.parameter_gradient(1));
      op.dbias_adds = run.parameter_gradient_adds(1);
    }
    op.products = run.products();
    if (kept_output_ >= 0) op.kept = run.output(kept_output_);
    BRISK_RUN_OP(run, linear_backward, op);
  }
  // What the op before hands on to the backward of this `run`.
  HandedGradient taken(const OpRun& run) const {
    HandedGradient handed{.du = run.handed_gradient(), .dropout = dropout_.at(run.batch())};
    if (has_bias_) {
      handed.dbias = bias_part(run.parameter_gradient(1));
      handed.dbias_adds = run.parameter_gradient_adds(1);
    }
    return handed;
  }

 private:
  Tensor weight_part(const Tensor& whole) const {
    return rows_ > 0 && whole ? whole.row_range(first_row_, rows_) : whole;
  }
  Tensor bias_part(const Tensor& whole) const { return rows_ > 0 && whole ? whole.columns(first_row_, rows_) : whole; }

  std::string label_;
  int row_set_;
  Activation activation_;
  bool has_bias_, has_residual_, saves_before_;
  int kept_output_;  // -1: nothing is kept
  int64_t first_row_, rows_;
  DropoutSite dropout_;
};

class NormOp final : public Op {
 public:
  // Outputs: y, then (training) the inverse deviation and, for layer norm, the mean.
  NormOp(std::string label, int row_set, NormKind kind, bool has_bias, double epsilon, DropoutSite dropout,
         bool training)
      : label_(std::move(label)),
        row_set_(row_set),
        kind_(kind),
        has_bias_(has_bias),
        epsilon_(static_cast<float>(epsilon)),
        dropout_(dropout),
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
    op.dropout = dropout_.at(run.batch());
    op.rows = run.set(row_set_).rows;
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
    op.dropout = dropout_.at(run.batch());
    op.rows = run.set(row_set_).rows;
    op.dx = run.input_gradient(0);
    op.dx_adds = run.input_gradient_adds(0);
    op.dgain = run.parameter_gradient(0);
    op.dgain_adds = run.parameter_gradient_adds(0);
    if (has_bias_) {
      op.dbias = run.parameter_gradient(1);
      op.dbias_adds = run.parameter_gradient_adds(1);
    }
    // Linear layers alone take gradients.
    if (const auto taker = run.taker()) op.handed = static_cast<const LinearOp&>(taker->op()).taken(*taker);
    BRISK_RUN_OP(run, norm_backward, op);
  }

 private:
  std::string label_;
  int row_set_;
  NormKind kind_;
  bool has_bias_;
  float epsilon_;
  DropoutSite dropout_;
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

std::string label_of(const Parameter* parameter) {
  const std::string& name = parameter->spec.name;
  return name.substr(0, name.find_last_of('.'));
}

}  // namespace

Value linear(Tape& tape, Value x, Parameter* weight, const LinearOptions& options) {
  const ParameterSpec& spec = weight->spec;
  BRISK_CHECK(spec.cols == tape.spec(x).cols, "{}: {} columns against {}", spec.name, spec.cols, tape.spec(x).cols);
  const DType type = options.residual ? tape.spec(options.residual).type : tape.activation_type();
  const int64_t width = options.rows > 0 ? options.rows : spec.rows;
  BRISK_CHECK(options.first_row >= 0 && options.first_row + width <= spec.rows, "{}: rows [{}, {}) of {}", spec.name,
              options.first_row, options.first_row + width, spec.rows);
  const Value y = make_value(tape, x, width, type, true);
  const bool saves_before = tape.training() && options.activation != Activation::none;
  const DropoutSite dropout(tape, options.dropout);
  Node node;
  const bool keeps = tape.training() && tape.products() == ProductFormat::fp8 && spec.cols % 16 == 0 && width % 16 == 0;
  node.op = std::make_unique<LinearOp>(label_of(weight), tape.spec(x).row_set, options, dropout, saves_before,
                                       !keeps         ? -1
                                       : saves_before ? 2
                                                      : 1);
  node.inputs = {x};
  node.input_in_backward = {spec.trained};  // only the weight's own gradient reads x
  node.outputs = {y};
  node.output_in_backward = {false};
  node.parameters = {weight};
  if (options.bias != nullptr) node.parameters.push_back(options.bias);
  if (options.rows > 0) node.parameter_parts.assign(node.parameters.size(), {options.first_row, width});
  if (options.residual) {
    node.inputs.push_back(options.residual);
    node.input_in_backward.push_back(false);
    node.residual = 1;
  }
  if (saves_before) {
    node.outputs.push_back(make_value(tape, x, width, tape.activation_type(), false));
    node.output_in_backward.push_back(true);
  }
  if (keeps) {
    const int64_t bytes = fp8_kept_bytes(tape.rows(tape.spec(x).row_set).rows, spec.cols, width);
    node.outputs.push_back(
        tape.add_value({.row_set = tape.spec(x).row_set, .fixed_rows = 1, .cols = bytes, .type = DType::e4m3}));
    node.output_in_backward.push_back(true);
  }
  node.passes_gelu = true;
  node.changes_product = options.activation != Activation::none || dropout.probability > 0;
  node.takes_gradient = options.activation == Activation::none;
  if (saves_before && options.activation == Activation::gelu_tanh && dropout.probability <= 0 && !options.residual) {
    node.gelu_of = 1;
  }
  if (saves_before || dropout.probability > 0) {
    node.backward_scratch = tape.rows(tape.spec(x).row_set).rows * width * size_of(tape.activation_type());
  }
  tape.record(std::move(node));
  return y;
}

Value norm(Tape& tape, Value x, NormKind kind, Parameter* gain, Parameter* bias, double epsilon, double dropout) {
  const Value y = make_value(tape, x, tape.spec(x).cols, tape.activation_type(), true);
  Node node;
  node.op = std::make_unique<NormOp>(label_of(gain), tape.spec(x).row_set, kind, bias != nullptr, epsilon,
                                     DropoutSite(tape, dropout), tape.training());
  node.inputs = {x};
  node.input_in_backward = {true};
  node.hands_gradient_on = true;
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

}  // namespace brisk
