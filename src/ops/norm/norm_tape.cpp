#include <utility>

#include "ops/backend.h"
#include "ops/cpu/cpu_workspace.h"
#include "ops/norm/norm.h"
#include "ops/tape/gpu_workspace.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

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
    if (const auto next = run.prepares_for()) next->op().describe_prepared_gradient(*next, op.prepared);
    BRISK_RUN_OP(run, norm_backward, op);
  }
  bool prepares_gradient() const override { return true; }
  GpuWorkspace gpu_workspace(const Tape& tape, const Node& node) const override {
    // Sums over rows, one of each block: more blocks than any GPU brisk runs on has resident for one kernel (6 for each
    // of up to 192 multiprocessors).
    constexpr int64_t kMostBlocks = 1152;
    const int64_t width = tape.spec(node.inputs[0]).cols;
    return {.shared = kMostBlocks * 3 * width * size_of(DType::f32) + column_sums_bytes(width)};
  }
  int64_t cpu_workspace(const Tape& tape, const Node& node) const override {
    const Value x = node.inputs[0];
    return 2 * column_sums_workspace_bytes(tape.capacity_rows(x), tape.spec(x).cols);
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

}  // namespace

Value norm(Tape& tape, Value x, NormKind kind, Parameter* gain, Parameter* bias, double epsilon, double dropout) {
  const Value y = make_value(tape, x, tape.spec(x).cols, tape.activation_type(), true);
  Node node;
  node.op = std::make_unique<NormOp>(label_of(gain), tape.spec(x).row_set, kind, bias != nullptr, epsilon,
                                     DropoutSite(tape, dropout), tape.training());
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

}  // namespace brisk
