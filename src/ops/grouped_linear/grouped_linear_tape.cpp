#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/grouped_linear/grouped_linear.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class GroupedLinearOp final : public Op {
 public:
  GroupedLinearOp(const GroupedLinearShape& shape, std::string name, bool has_bias)
      : shape_(shape), name_(std::move(name)), has_bias_(has_bias) {}
  OpFamily family() const override { return OpFamily::linear; }
  std::string name() const override { return name_; }
  void forward(OpRun& run) const override {
    const GroupedLinearForward op{shape_, run.input(0), run.master(0), has_bias_ ? run.master(1) : Tensor{},
                                  run.output(0)};
    BRISK_RUN_OP(run, grouped_linear_forward, op);
  }
  void backward(OpRun& run) const override {
    GroupedLinearBackward op{.shape = shape_, .dy = run.output_gradient(0), .x = run.input(0), .weight = run.master(0)};
    op.dx = run.input_gradient(0);
    op.dx_adds = op.dx && run.input_gradient_adds(0);
    op.dweight = run.parameter_gradient(0);
    op.dweight_adds = run.parameter_gradient_adds(0);
    if (has_bias_) {
      op.dbias = run.parameter_gradient(1);
      op.dbias_adds = run.parameter_gradient_adds(1);
    }
    op.scratch = run.scratch(DType::f32, kGroupedLinearParts, scratch_columns(op.weight.rows));
    BRISK_RUN_OP(run, grouped_linear_backward, op);
  }
  OpCost cost(const Tape& tape, const Node& node, std::span<const RowMeans> sets) const override {
    return product_cost(rows_of_a_sequence(tape, node.inputs[0], sets), shape_.inputs.inputs,
                        tape.spec(node.outputs[0]).cols);
  }
  int64_t scratch_columns(int64_t outputs) const { return outputs * (shape_.inputs.inputs + 1); }

 private:
  GroupedLinearShape shape_;
  std::string name_;
  bool has_bias_;
};

}  // namespace

Value grouped_linear(Tape& tape, Value x, Parameter* weight, Parameter* bias, const GroupedLinearOptions& options) {
  GroupedLinearShape shape;
  shape.groups = options.groups;
  shape.parts = options.parts;
  shape.outputs = weight->spec.rows / (options.groups * options.parts);
  shape.inputs = {weight->spec.cols, options.matrix_cols, options.tile_cols};
  BRISK_CHECK(tape.spec(x).cols == shape.groups * weight->spec.cols &&
                  weight->spec.rows == shape.parts * shape.groups * shape.outputs && !weight->spec.multiplies,
              "{}: [{}, {}] for {} columns in {} groups", weight->spec.name, weight->spec.rows, weight->spec.cols,
              tape.spec(x).cols, shape.groups);
  const Value y = make_value(tape, x, weight->spec.rows, tape.activation_type(), true);
  auto op = std::make_unique<GroupedLinearOp>(shape, label_of(weight), bias != nullptr);
  Node node;
  node.backward_scratch = kGroupedLinearParts * op->scratch_columns(weight->spec.rows) * size_of(DType::f32);
  node.op = std::move(op);
  node.inputs = {x};
  node.outputs = {y};
  node.input_in_backward = {true};
  node.parameters = {weight};
  if (bias != nullptr) node.parameters.push_back(bias);
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
