#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/interpolate/interpolate.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class InterpolateOp final : public Op {
 public:
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "interpolate"; }
  void forward(OpRun& run) const override {
    const InterpolateForward op{run.input(0), run.input(1), run.input(2), run.output(0)};
    BRISK_RUN_OP(run, interpolate_forward, op);
  }
  void backward(OpRun& run) const override {
    InterpolateBackward op{.x = run.input(0), .target = run.input(1), .share = run.input(2)};
    op.dy = run.output_gradient(0);
    op.dx = run.input_gradient(0);
    op.dtarget = run.input_gradient(1);
    op.dshare = run.input_gradient(2);
    op.dx_adds = op.dx && run.input_gradient_adds(0);
    op.dtarget_adds = op.dtarget && run.input_gradient_adds(1);
    op.dshare_adds = op.dshare && run.input_gradient_adds(2);
    BRISK_RUN_OP(run, interpolate_backward, op);
  }
};

}  // namespace

Value interpolate(Tape& tape, Value x, Value target, Value share) {
  const ValueSpec spec = tape.spec(x);
  BRISK_CHECK(tape.spec(target).cols == spec.cols && spec.cols % tape.spec(share).cols == 0,
              "interpolate: {} columns towards {} by {}", spec.cols, tape.spec(target).cols, tape.spec(share).cols);
  const Value y = make_value(tape, x, spec.cols, spec.type, true);
  Node node;
  node.op = std::make_unique<InterpolateOp>();
  node.inputs = {x, target, share};
  node.outputs = {y};
  node.input_in_backward = {true, true, true};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
