#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/rotary/rotary.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class RotaryOp final : public OverwritingOp {
 public:
  RotaryOp(int row_set, int64_t rotated, int64_t head_width, double theta)
      : row_set_(row_set), rotated_(rotated), head_width_(head_width), theta_(static_cast<float>(theta)) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "rotary"; }
  void forward(OpRun& run) const override { turn(run, run.input(0), run.output(0), false); }
  void backward(OpRun& run) const override { turn(run, run.output_gradient(0), run.input_gradient(0), true); }

 private:
  void turn(OpRun& run, const Tensor& x, const Tensor& y, bool inverse) const {
    const Rotary op{x, y, run.set(row_set_).rows, rotated_, head_width_, theta_, inverse};
    BRISK_RUN_OP(run, rotary, op);
  }
  int row_set_;
  int64_t rotated_, head_width_;
  float theta_;
};

}  // namespace

Value rotary(Tape& tape, Value x, int64_t rotated, int64_t head_width, double theta) {
  if (head_width % 2 != 0) {
    user_error(
        "rotary positions turn pairs of columns, so the width of a head must be even, and it is {}: choose model.d_model "
        "and model.num_heads so that d_model / num_heads is even",
        head_width);
  }
  BRISK_CHECK(head_width > 0 && rotated % head_width == 0 && rotated <= tape.spec(x).cols,
              "rotary: {} of {} columns are no whole heads of {}", rotated, tape.spec(x).cols, head_width);
  const Value y = make_value(tape, x, tape.spec(x).cols, tape.spec(x).type, true);
  Node node;
  node.op = std::make_unique<RotaryOp>(tape.spec(x).row_set, rotated, head_width, theta);
  node.inputs = {x};
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
