#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/grid_attention/grid_attention.h"
#include "ops/tape/gpu_workspace.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class GridAttentionOp final : public OverwritingOp {
 public:
  // Inputs: qkv, then the bias if there is one. Outputs: y, then (training) the log-sum-exp.
  GridAttentionOp(int row_set, const GridAttentionShape& shape, DropoutSite dropout, bool has_bias, bool training)
      : row_set_(row_set), shape_(shape), dropout_(dropout), has_bias_(has_bias), training_(training) {}
  OpFamily family() const override { return OpFamily::attention; }
  std::string name() const override { return "grid_attention"; }
  bool writes_every_gradient() const override { return has_bias_; }
  void forward(OpRun& run) const override {
    const GridAttentionForward op = arguments(run);
    BRISK_RUN_OP(run, grid_attention_forward, op);
  }
  void backward(OpRun& run) const override {
    GridAttentionBackward op;
    op.forward = arguments(run);
    op.dy = run.output_gradient(0);
    op.dqkv = run.input_gradient(0);
    if (has_bias_) {
      op.dbias = run.input_gradient(1);
      const int64_t parts = grid_bias_parts(shape_, op.forward.rows.sequences);
      op.dbias_parts = run.scratch(DType::f32, parts * shape_.heads, op.dbias.cols);
    }
    BRISK_RUN_OP(run, grid_attention_backward, op);
  }
  // Two products of each row with the rows of its region; backward, four.
  OpCost cost(const Tape& tape, const Node& node, std::span<const RowMeans> sets) const override {
    double pairs = 0;  // of a sequence
    for (int32_t number = 0; number < shape_.windows.regions(); ++number) {
      const double rows = shape_.windows.rows_of(shape_.windows.region(number));
      pairs += rows * rows;
    }
    const double sequences = rows_of_a_sequence(tape, node.outputs[0], sets) / shape_.windows.rows();
    const double forward = 4 * sequences * pairs * static_cast<double>(shape_.heads * shape_.head_width);
    return {.forward = forward, .backward = 2 * forward};
  }
  GpuWorkspace gpu_workspace(const Tape& tape, const Node& node) const override {
    // A number for each row and head: dy . y.
    return {.shared = workspace_piece(tape.capacity_rows(node.outputs[0]) * shape_.heads * size_of(DType::f32))};
  }
  int64_t cpu_workspace(const Tape&, const Node&) const override { return cpu::grid_attention_workspace_bytes(shape_); }

 private:
  GridAttentionForward arguments(OpRun& run) const {
    GridAttentionForward op;
    op.shape = shape_;
    op.qkv = run.input(0);
    op.rows = run.set(row_set_).rows;
    if (has_bias_) op.bias = run.input(1);
    op.dropout = dropout_.at(run.batch());
    op.y = run.output(0);
    if (training_) op.log_sum_exp = run.output(1);
    return op;
  }
  int row_set_;
  GridAttentionShape shape_;
  DropoutSite dropout_;
  bool has_bias_, training_;
};

}  // namespace

Value grid_attention(Tape& tape, Value qkv, const GridAttentionShape& shape, Value bias, double dropout) {
  const GridWindows& windows = shape.windows;
  const int64_t places = windows.places();
  BRISK_CHECK(windows.height % windows.window_height == 0 && windows.width % windows.window_width == 0 &&
                  windows.shift >= 0 && windows.shift < std::min(windows.window_height, windows.window_width) &&
                  (!windows.class_row || windows.regions() == 1),
              "a grid of {} x {} in windows of {} x {}, shifted by {}", windows.height, windows.width,
              windows.window_height, windows.window_width, windows.shift);
  const bool has_bias = static_cast<bool>(bias);
  BRISK_CHECK(!has_bias || (tape.spec(bias).fixed_rows == shape.heads && tape.spec(bias).cols == places * places),
              "a bias of other windows");
  const Value y = make_value(tape, qkv, shape.heads * shape.head_width, tape.activation_type(), true);
  Node node;
  node.op = std::make_unique<GridAttentionOp>(tape.spec(qkv).row_set, shape, DropoutSite(tape, dropout), has_bias,
                                              tape.training());
  node.inputs = {qkv};
  if (has_bias) {
    node.inputs.push_back(bias);
    const int64_t parts = grid_bias_parts(shape, tape.rows(tape.spec(qkv).row_set).sequences);
    node.backward_scratch = parts * shape.heads * places * places * size_of(DType::f32);
  }
  node.outputs = {y};
  if (tape.training()) node.outputs.push_back(make_value(tape, qkv, shape.heads, DType::f32, false));
  node.input_in_backward.assign(node.inputs.size(), true);
  node.output_in_backward.assign(node.outputs.size(), true);
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
