// The ends of a tape: the loss, and logits for generation and tests.
#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/cpu/cpu_workspace.h"
#include "ops/linear/linear.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/loss/linear_cross_entropy_hopper.h"
#include "ops/rows/rows_copy.h"
#include "ops/tape/gpu_workspace.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

// Of the loss and of logits alone: x in the type of the products, sums of the bias's gradient, and what the Hopper
// kernel of the exponentials keeps.
int64_t loss_workspace_bytes(const Tape& tape, const Node& node) {
  const DType product = tape.activation_type();
  const ValueSpec& x = tape.spec(node.inputs[0]);
  const int64_t rows = tape.capacity_rows(node.inputs[0]);
  const int64_t matrix_bytes = workspace_piece(rows * x.cols * size_of(product));
  int64_t bytes = column_sums_bytes(node.parameters[0]->spec.rows);
  if (x.type != product) bytes += matrix_bytes;
  if (product == DType::bf16) {
    bytes += matrix_bytes + workspace_piece(rows * size_of(DType::f32)) +
             workspace_piece(cuda::exponentials_state_bytes(rows));
  }
  return bytes;
}

int64_t loss_cpu_workspace_bytes(const Tape& tape, const Node& node) {
  constexpr int64_t kMostRows = 1024;  // of a chunk of the rows, of which the logits are there at a time
  const ParameterSpec& weight = node.parameters[0]->spec;
  const int64_t rows = std::min(tape.capacity_rows(node.inputs[0]), kMostRows);
  return cpu::product_workspace_bytes(rows, weight.cols, weight.rows, tape.spec(node.inputs[0]).type,
                                      tape.activation_type());
}

class LinearCrossEntropyOp final : public OverwritingOp {
 public:
  // Outputs: row losses, argmax, sums.
  LinearCrossEntropyOp(int row_set, const LossOptions& options)
      : row_set_(row_set),
        label_smoothing_(static_cast<float>(options.label_smoothing)),
        soft_weight_(static_cast<float>(options.soft_weight)),
        temperature_(static_cast<float>(options.temperature)),
        has_bias_(options.bias != nullptr) {}
  OpFamily family() const override { return OpFamily::loss; }
  std::string name() const override { return "linear_cross_entropy"; }
  void forward(OpRun& run) const override {
    const LinearCrossEntropy op = arguments(run);
    BRISK_RUN_OP(run, linear_cross_entropy, op);
  }
  void backward(OpRun& run) const override {
    LinearCrossEntropy op = arguments(run);
    if (soft_weight_ > 0) {
      op.soft_targets = run.set(row_set_).soft_targets;
      op.soft_weight = soft_weight_;
      op.temperature = temperature_;
    }
    op.dx = run.input_gradient(0);
    op.dweight = run.parameter_gradient(0);
    op.dweight_adds = run.parameter_gradient_adds(0);
    if (has_bias_) {
      op.dbias = run.parameter_gradient(1);
      op.dbias_adds = run.parameter_gradient_adds(1);
    }
    BRISK_RUN_OP(run, linear_cross_entropy, op);
  }
  OpCost cost(const Tape& tape, const Node& node, std::span<const RowMeans> sets) const override {
    const ParameterSpec& weight = node.parameters[0]->spec;
    return product_cost(rows_of_a_sequence(tape, node.inputs[0], sets), weight.cols, weight.rows);
  }
  GpuWorkspace gpu_workspace(const Tape& tape, const Node& node) const override {
    return {.shared = loss_workspace_bytes(tape, node)};
  }
  int64_t cpu_workspace(const Tape& tape, const Node& node) const override {
    return loss_cpu_workspace_bytes(tape, node);
  }

 private:
  LinearCrossEntropy arguments(OpRun& run) const {
    LinearCrossEntropy op;
    op.x = run.input(0);
    op.weight = run.compute(0);
    if (has_bias_) op.bias = run.master(1);
    op.targets = run.set(row_set_).targets;
    op.weights = run.set(row_set_).weights;
    op.label_smoothing = label_smoothing_;
    op.scale = run.batch().loss_scale;
    op.step_scale = run.batch().step_loss_scale;
    op.products = run.products();
    op.loss = run.output(0);
    op.argmax = run.output(1);
    op.sums = run.output(2);
    if (run.scratch_bytes() > 0) op.scratch = run.scratch(DType::f32, 1, run.scratch_bytes() / size_of(DType::f32));
    return op;
  }
  int row_set_;
  float label_smoothing_;
  float soft_weight_, temperature_;
  bool has_bias_;
};

class LogitsOp final : public Op {
 public:
  LogitsOp(int row_set, bool has_bias, bool last_rows)
      : row_set_(row_set), has_bias_(has_bias), last_rows_(last_rows) {}
  OpFamily family() const override { return OpFamily::loss; }
  std::string name() const override { return "logits"; }
  void forward(OpRun& run) const override {
    LinearForward op;
    op.x = run.input(0);
    op.weight = run.compute(0);
    if (has_bias_) op.bias = run.master(1);
    op.y = run.output(0);
    if (last_rows_) {
      const RowSet& rows = run.set(row_set_).rows;
      const Tensor last = run.scratch(op.x.type, rows.sequences, op.x.cols);
      BRISK_RUN_OP(run, gather_last_rows, op.x, rows, last);
      op.x = last;
      op.y = op.y.row_range(0, rows.sequences);
    }
    BRISK_RUN_OP(run, linear_forward, op);
  }
  void backward(OpRun&) const override { BRISK_CHECK(false, "logits are read, not trained"); }
  OpCost cost(const Tape& tape, const Node& node, std::span<const RowMeans> sets) const override {
    const ParameterSpec& weight = node.parameters[0]->spec;
    const double rows = last_rows_ ? 1 : rows_of_a_sequence(tape, node.inputs[0], sets);
    return {.forward = product_cost(rows, weight.cols, weight.rows).forward};
  }
  GpuWorkspace gpu_workspace(const Tape& tape, const Node& node) const override {
    return {.shared = loss_workspace_bytes(tape, node)};
  }
  int64_t cpu_workspace(const Tape& tape, const Node& node) const override {
    return loss_cpu_workspace_bytes(tape, node);
  }

 private:
  int row_set_;
  bool has_bias_, last_rows_;
};

Value record_logits(Tape& tape, Value x, Parameter* weight, Parameter* bias, bool last_rows) {
  const ValueSpec spec = tape.spec(x);  // a copy: add_value moves the specs
  ValueSpec out{.row_set = spec.row_set, .cols = weight->spec.rows, .type = DType::f32, .read_back = true};
  if (last_rows) out.fixed_rows = tape.rows(spec.row_set).sequences;
  const Value logits = tape.add_value(out);
  Node node;
  node.op = std::make_unique<LogitsOp>(spec.row_set, bias != nullptr, last_rows);
  node.inputs = {x};
  node.outputs = {logits};
  node.parameters = {weight};
  if (bias != nullptr) node.parameters.push_back(bias);
  if (last_rows) node.forward_scratch = out.fixed_rows * spec.cols * size_of(spec.type);
  tape.record(std::move(node));
  return logits;
}

}  // namespace

LossValues linear_cross_entropy(Tape& tape, Value x, Parameter* weight, const LossOptions& options) {
  const int row_set = tape.spec(x).row_set;
  const LossValues values{
      .row_losses = tape.add_value({.row_set = row_set, .cols = 1, .type = DType::f32, .read_back = true}),
      .sums = tape.add_value({.row_set = row_set, .fixed_rows = 1, .cols = 4, .type = DType::f32, .read_back = true}),
  };
  Node node;
  node.op = std::make_unique<LinearCrossEntropyOp>(row_set, options);
  node.inputs = {x};
  node.outputs = {values.row_losses, tape.add_value({.row_set = row_set, .cols = 1, .type = DType::i32}), values.sums};
  node.parameters = {weight};
  if (options.bias != nullptr) node.parameters.push_back(options.bias);
  node.is_loss = true;
  if (options.soft_weight > 0 && tape.training()) tape.matrices(row_set).soft_targets = weight->spec.rows;
  const int64_t rows = tape.rows(row_set).rows;
  const DType weight_type = tape.activation_type();
  node.forward_scratch = linear_cross_entropy_scratch(rows, weight->spec.cols, weight->spec.rows, weight_type, false);
  node.backward_scratch = linear_cross_entropy_scratch(rows, weight->spec.cols, weight->spec.rows, weight_type, true);
#if BRISK_HAVE_CUDA
  node.gpu_forward_scratch = cuda::linear_cross_entropy_scratch(rows, weight->spec.rows, weight_type, false);
  node.gpu_backward_scratch = cuda::linear_cross_entropy_scratch(rows, weight->spec.rows, weight_type, true);
#endif
  tape.record(std::move(node));
  return values;
}

Value last_row_logits(Tape& tape, Value x, Parameter* weight, Parameter* bias) {
  return record_logits(tape, x, weight, bias, true);
}
Value logits(Tape& tape, Value x, Parameter* weight, Parameter* bias) {
  return record_logits(tape, x, weight, bias, false);
}

}  // namespace brisk
