#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/softmax/softmax.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class SoftmaxOp final : public Op {
 public:
  SoftmaxOp(int64_t groups, bool logarithm) : groups_(groups), logarithm_(logarithm) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return logarithm_ ? "log_softmax" : "softmax"; }
  void forward(OpRun& run) const override {
    const SoftmaxForward op{run.input(0), run.output(0), groups_, logarithm_};
    BRISK_RUN_OP(run, softmax_forward, op);
  }
  void backward(OpRun& run) const override {
    const SoftmaxBackward op{run.output(0), run.output_gradient(0),    run.input_gradient(0), groups_,
                             logarithm_,    run.input_gradient_adds(0)};
    BRISK_RUN_OP(run, softmax_backward, op);
  }

 private:
  int64_t groups_;
  bool logarithm_;
};

Value record_softmax(Tape& tape, Value x, int64_t groups, bool logarithm) {
  const int64_t cols = tape.spec(x).cols;
  BRISK_CHECK(groups > 0 && cols % groups == 0, "softmax: {} columns in {} groups", cols, groups);
  const Value y = make_value(tape, x, cols, tape.spec(x).type, true);
  Node node;
  node.op = std::make_unique<SoftmaxOp>(groups, logarithm);
  node.inputs = {x};
  node.outputs = {y};
  node.output_in_backward = {true};
  tape.record(std::move(node));
  return y;
}

}  // namespace

Value softmax(Tape& tape, Value x, int64_t groups) { return record_softmax(tape, x, groups, false); }
Value log_softmax(Tape& tape, Value x, int64_t groups) { return record_softmax(tape, x, groups, true); }

}  // namespace brisk
