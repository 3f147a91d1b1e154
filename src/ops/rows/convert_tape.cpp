#include <utility>

#include "ops/rows/rows_copy.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class ConvertOp final : public Op {
 public:
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "convert"; }
  void forward(OpRun& run) const override { BRISK_RUN_OP(run, copy_rows, run.input(0), run.output(0), false); }
  void backward(OpRun& run) const override {
    BRISK_RUN_OP(run, copy_rows, run.output_gradient(0), run.input_gradient(0), run.input_gradient_adds(0));
  }
};

}  // namespace

Value convert(Tape& tape, Value x, DType type) {
  if (tape.spec(x).type == type) return x;
  const Value y = make_value(tape, x, tape.spec(x).cols, type, true);
  Node node;
  node.op = std::make_unique<ConvertOp>();
  node.inputs = {x};
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
