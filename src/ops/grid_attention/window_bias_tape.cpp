#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/grid_attention/window_bias.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class WindowBiasOp final : public Op {
 public:
  explicit WindowBiasOp(const GridWindows& windows) : windows_(windows) {}
  OpFamily family() const override { return OpFamily::embedding; }
  std::string name() const override { return "window_bias"; }
  void forward(OpRun& run) const override {
    const WindowBiasForward op{windows_, run.master(0), run.output(0)};
    BRISK_RUN_OP(run, window_bias_forward, op);
  }
  void backward(OpRun& run) const override {
    if (!run.parameter_gradient(0)) return;
    const WindowBiasBackward op{windows_, run.output_gradient(0), run.parameter_gradient(0),
                                run.parameter_gradient_adds(0)};
    BRISK_RUN_OP(run, window_bias_backward, op);
  }

 private:
  GridWindows windows_;
};

}  // namespace

Value window_bias(Tape& tape, Parameter* table, const GridWindows& windows) {
  BRISK_CHECK(table->spec.rows == window_bias_rows(windows), "a table of {} rows for windows with {}", table->spec.rows,
              window_bias_rows(windows));
  const int64_t places = windows.places();
  const Value y =
      tape.add_value({.fixed_rows = table->spec.cols, .cols = places * places, .type = DType::f32, .gradient = true});
  Node node;
  node.op = std::make_unique<WindowBiasOp>(windows);
  node.outputs = {y};
  node.parameters = {table};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
