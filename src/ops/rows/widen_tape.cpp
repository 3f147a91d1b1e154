#include <utility>

#include "ops/rows/rows_copy.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class WidenOp final : public Op {
 public:
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "widen"; }
  void forward(OpRun& run) const override { BRISK_RUN_OP(run, copy_rows, run.input(0), run.output(0), false); }
  void backward(OpRun& run) const override {
    BRISK_RUN_OP(run, copy_rows, run.output_gradient(0), run.input_gradient(0), run.input_gradient_adds(0));
  }
};

}  // namespace

Value widen(Tape& tape, Value x) {
  if (tape.spec(x).type == DType::f32) return x;
  const Value y = make_value(tape, x, tape.spec(x).cols, DType::f32, true);
  Node node;
  node.op = std::make_unique<WidenOp>();
  node.inputs = {x};
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
