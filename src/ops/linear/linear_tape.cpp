#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/cpu/cpu_workspace.h"
#include "ops/linear/linear.h"
#include "ops/norm/norm.h"
#include "ops/rows/rows_copy.h"
#include "ops/tape/gpu_workspace.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class LinearOp final : public Op {
 public:
  // Inputs: x, then the residual if any. Outputs: y, then the value before the activation if it is saved.
  LinearOp(std::string label, int row_set, const LinearOptions& options, DropoutSite dropout, bool saves_before,
           int fp8_output)
      : label_(std::move(label)),
        row_set_(row_set),
        activation_(options.activation),
        has_bias_(options.bias != nullptr),
        has_residual_(static_cast<bool>(options.residual)),
        saves_before_(saves_before),
        fp8_output_(fp8_output),
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
    if (fp8_output_ >= 0) op.fp8_operands = run.output(fp8_output_);
    BRISK_RUN_OP(run, linear_forward, op);
  }
  void backward(OpRun& run) const override {
    const Tensor dy = run.output_gradient(0);
    LinearBackward op;
    const Tensor prepared = run.prepared_gradient();
    op.dy = prepared ? prepared : dy;
    op.x = run.input(0);
    op.weight = weight_part(run.compute(0));
    const bool before_activation = run.output_gradient_has_gelu_slope();  // dy is the gradient before the activation
    if (!before_activation) op.activation = activation_;
    if (saves_before_ && !before_activation) op.before = run.output(1);
    if (!prepared) op.dropout = dropout_.at(run.batch());
    op.rows = run.set(row_set_).rows;
    if (run.scratch_bytes() > 0 && !before_activation && !prepared) {
      op.scratch = run.scratch(run.compute(0).type, dy.rows, dy.cols);
    }
    op.dx = run.input_gradient(0);
    op.dx_adds = op.dx && run.input_gradient_adds(0);
    if (op.dx) op.dx_gelu = run.gelu_slope_at();
    op.dweight = weight_part(run.parameter_gradient(0));
    op.dweight_adds = run.parameter_gradient_adds(0);
    if (has_bias_ && !prepared) {
      op.dbias = bias_part(run.parameter_gradient(1));
      op.dbias_adds = run.parameter_gradient_adds(1);
    }
    op.products = run.products();
    if (fp8_output_ >= 0) op.fp8_operands = run.output(fp8_output_);
    BRISK_RUN_OP(run, linear_backward, op);
    if (has_residual_) {  // after dx, to which it is added where x itself is the residual
      const Tensor dresidual = run.input_gradient(1);
      if (dresidual) BRISK_RUN_OP(run, copy_rows, dy, dresidual, run.input_gradient_adds(1));
    }
  }

  OpCost cost(const Tape& tape, const Node& node, std::span<const RowMeans> sets) const override {
    return product_cost(rows_of_a_sequence(tape, node.inputs[0], sets), tape.spec(node.inputs[0]).cols,
                        tape.spec(node.outputs[0]).cols);
  }
  GpuWorkspace gpu_workspace(const Tape& tape, const Node& node) const override {
    const Value x = node.inputs[0], y = node.outputs[0];
    const int64_t width = tape.spec(y).cols, product = size_of(tape.activation_type());
    const auto converted = [&](Value value) {  // a matrix that products cannot read as it is
      const ValueSpec& spec = tape.spec(value);
      if (spec.type == tape.activation_type()) return int64_t{0};
      return workspace_piece(tape.capacity_rows(value) * spec.cols * product);
    };
    const int64_t result = workspace_piece(tape.capacity_rows(y) * width * product);
    const int64_t forward =
        converted(x) + workspace_piece(width * product) + (changes_product() && node.outputs.size() == 1 ? result : 0);
    const int64_t backward = converted(x) + (changes_product() ? 0 : converted(y)) + column_sums_bytes(width);
    // fp8, backward: the gradient along rows and along columns, the input, and the weight; all of one byte.
    constexpr int64_t kPadding = 32;  // of rows and columns
    const int64_t rows = tape.capacity_rows(y) + kPadding, outputs = width + kPadding;
    const int64_t inputs = tape.spec(x).cols + kPadding;
    const int64_t operands = workspace_piece(2 * rows * outputs) + workspace_piece(rows * inputs) +
                             workspace_piece(outputs * inputs) + 16 * kWorkspaceAlignment;
    return {.shared = std::max(forward, backward), .operands = operands};
  }

  int64_t cpu_workspace(const Tape& tape, const Node& node) const override {
    const ValueSpec &x = tape.spec(node.inputs[0]), &y = tape.spec(node.outputs[0]);
    return cpu::product_workspace_bytes(tape.capacity_rows(node.inputs[0]), x.cols, y.cols, x.type,
                                        tape.activation_type()) +
           column_sums_workspace_bytes(tape.capacity_rows(node.outputs[0]), y.cols);
  }

  int gelu_argument() const override {
    const bool only_gelu = activation_ == Activation::gelu_tanh && dropout_.probability <= 0 && !has_residual_;
    return saves_before_ && only_gelu ? 1 : -1;
  }
  bool applies_gelu_slope() const override { return true; }
  // Worth it where backward would convert its gradient or apply dropout in a pass of its own.
  bool wants_prepared_gradient(const Tape& tape, const Node& node) const override {
    const DType product = tape.activation_type();
    const bool has_pass =
        tape.spec(node.outputs[0]).type != product || (dropout_.probability > 0 && product != DType::f32);
    return activation_ == Activation::none && has_pass;
  }
  void describe_prepared_gradient(const OpRun& run, PreparedGradient& wanted) const override {
    wanted.du = run.prepared_gradient();
    wanted.dropout = dropout_.at(run.batch());
    if (has_bias_) {
      wanted.dbias = bias_part(run.parameter_gradient(1));
      wanted.dbias_adds = run.parameter_gradient_adds(1);
    }
  }

 private:
  // An activation or dropout comes between the product and output 0.
  bool changes_product() const { return activation_ != Activation::none || dropout_.probability > 0; }
  Tensor weight_part(const Tensor& whole) const {
    return rows_ > 0 && whole ? whole.row_range(first_row_, rows_) : whole;
  }
  Tensor bias_part(const Tensor& whole) const {
    return rows_ > 0 && whole && whole.cols > rows_ ? whole.columns(first_row_, rows_) : whole;
  }

  std::string label_;
  int row_set_;
  Activation activation_;
  bool has_bias_, has_residual_, saves_before_;
  int fp8_output_;  // the output with the operands in fp8 for backward; -1: none
  int64_t first_row_, rows_;
  DropoutSite dropout_;
};

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
  const bool keeps = tape.training() && tape.products() == GemmFormat::fp8 && spec.cols % 16 == 0 && width % 16 == 0;
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
  if (options.rows > 0 && options.bias != nullptr && options.bias->spec.cols == width)
    node.parameter_parts[1].first = 0;
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
    const int64_t bytes = fp8_operand_bytes(tape.rows(tape.spec(x).row_set).rows, spec.cols, width);
    node.outputs.push_back(
        tape.add_value({.row_set = tape.spec(x).row_set, .fixed_rows = 1, .cols = bytes, .type = DType::e4m3}));
    node.output_in_backward.push_back(true);
  }
  if (saves_before || dropout.probability > 0) {
    node.backward_scratch = tape.rows(tape.spec(x).row_set).rows * width * size_of(tape.activation_type());
  }
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
