#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/rows/pick_rows.h"
#include "ops/tape/gpu_workspace.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class PickRowsOp final : public Op {
 public:
  explicit PickRowsOp(int to_set) : to_set_(to_set) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "pick_rows"; }
  void forward(OpRun& run) const override {
    const PickRowsForward op{run.input(0), source(run), run.output(0)};
    BRISK_RUN_OP(run, pick_rows_forward, op);
  }
  void backward(OpRun& run) const override {
    const PickRowsBackward op{run.output_gradient(0), source(run), run.input_gradient(0), run.input_gradient_adds(0)};
    BRISK_RUN_OP(run, pick_rows_backward, op);
  }
  GpuWorkspace gpu_workspace(const Tape& tape, const Node& node) const override {
    return {.shared = workspace_piece(tape.capacity_rows(node.inputs[0]) * 2 * size_of(DType::i32))};
  }

 private:
  const int32_t* source(const OpRun& run) const {
    const DeviceBatch::Set& set = run.set(to_set_);
    BRISK_CHECK(set.source != nullptr || set.rows.rows == 0, "row set {} has no source indices", to_set_);
    return set.source;
  }
  int to_set_;
};

}  // namespace

Value pick_rows(Tape& tape, Value x, int to_set) {
  ValueSpec spec = tape.spec(x);
  spec.row_set = to_set;
  spec.gradient = true;
  spec.read_back = false;
  const Value y = tape.add_value(spec);
  Node node;
  node.op = std::make_unique<PickRowsOp>(to_set);
  node.inputs = {x};
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
