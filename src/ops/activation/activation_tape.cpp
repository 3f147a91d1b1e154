#include <utility>

#include "ops/activation/gated.h"
#include "ops/activation/pointwise.h"
#include "ops/backend.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class GatedOp final : public OverwritingOp {
 public:
  explicit GatedOp(Activation activation) : activation_(activation) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "gated"; }
  void forward(OpRun& run) const override {
    const GatedForward op{activation_, run.input(0), run.output(0)};
    BRISK_RUN_OP(run, gated_forward, op);
  }
  void backward(OpRun& run) const override {
    const GatedBackward op{activation_, run.input(0), run.output_gradient(0), run.input_gradient(0)};
    BRISK_RUN_OP(run, gated_backward, op);
  }

 private:
  Activation activation_;
};

class PointwiseOp final : public OverwritingOp {
 public:
  PointwiseOp(Activation activation, double factor) : activation_(activation), factor_(static_cast<float>(factor)) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "pointwise"; }
  void forward(OpRun& run) const override {
    const PointwiseForward op{activation_, factor_, run.input(0), run.output(0)};
    BRISK_RUN_OP(run, pointwise_forward, op);
  }
  void backward(OpRun& run) const override {
    const Tensor x = activation_ == Activation::none ? Tensor{} : run.input(0);
    const PointwiseBackward op{activation_, factor_, x, run.output_gradient(0), run.input_gradient(0)};
    BRISK_RUN_OP(run, pointwise_backward, op);
  }

 private:
  Activation activation_;
  float factor_;
};

}  // namespace

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
