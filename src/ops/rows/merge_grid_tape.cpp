#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/rows/merge_grid.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class MergeGridOp final : public Op {
 public:
  MergeGridOp(int from_set, int to_set, const MergedGrid& grid) : from_set_(from_set), to_set_(to_set), grid_(grid) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "merge_grid"; }
  void forward(OpRun& run) const override {
    const MergeGridForward op{grid_, run.input(0), run.set(to_set_).rows, run.output(0)};
    BRISK_RUN_OP(run, merge_grid_forward, op);
  }
  void backward(OpRun& run) const override {
    const MergeGridBackward op{grid_, run.output_gradient(0), run.set(from_set_).rows, run.input_gradient(0),
                               run.input_gradient_adds(0)};
    BRISK_RUN_OP(run, merge_grid_backward, op);
  }

 private:
  int from_set_, to_set_;
  MergedGrid grid_;
};

}  // namespace

Value merge_grid(Tape& tape, Value x, int to_set, int64_t height, int64_t width) {
  BRISK_CHECK(height % 2 == 0 && width % 2 == 0, "a grid of {} x {} cannot be halved", height, width);
  const int from_set = tape.spec(x).row_set;
  ValueSpec spec = tape.spec(x);
  spec.row_set = to_set;
  spec.cols = 4 * spec.cols;
  spec.gradient = true;
  spec.read_back = false;
  const Value y = tape.add_value(spec);
  Node node;
  node.op = std::make_unique<MergeGridOp>(from_set, to_set,
                                          MergedGrid{static_cast<int32_t>(height), static_cast<int32_t>(width)});
  node.inputs = {x};
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
