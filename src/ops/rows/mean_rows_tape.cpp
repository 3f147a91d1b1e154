#include <utility>

#include "ops/backend.h"
#include "ops/rows/mean_rows.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class MeanRowsOp final : public Op {
 public:
  MeanRowsOp(int from_set, int64_t first) : from_set_(from_set), first_(first) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "mean_rows"; }
  void forward(OpRun& run) const override {
    const MeanRowsForward op{first_, run.input(0), run.set(from_set_).rows, run.output(0)};
    BRISK_RUN_OP(run, mean_rows_forward, op);
  }
  void backward(OpRun& run) const override {
    const MeanRowsBackward op{first_, run.output_gradient(0), run.set(from_set_).rows, run.input_gradient(0),
                              run.input_gradient_adds(0)};
    BRISK_RUN_OP(run, mean_rows_backward, op);
  }

 private:
  int from_set_;
  int64_t first_;
};

}  // namespace

Value mean_rows(Tape& tape, Value x, int to_set, int64_t first) {
  const int from_set = tape.spec(x).row_set;
  ValueSpec spec = tape.spec(x);
  spec.row_set = to_set;
  spec.gradient = true;
  spec.read_back = false;
  const Value y = tape.add_value(spec);
  Node node;
  node.op = std::make_unique<MeanRowsOp>(from_set, first);
  node.inputs = {x};
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
