#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/pixels/pixel_rows.h"
#include "ops/tape/tape_ops.h"
#include "tensor/program.h"

namespace brisk {

namespace {

class PixelRowsOp final : public Op {
 public:
  PixelRowsOp(int row_set, const PixelRowsOptions& options) : row_set_(row_set), options_(options) {}
  OpFamily family() const override { return OpFamily::embedding; }
  std::string name() const override { return "pixel_rows"; }
  void forward(OpRun& run) const override {
    const DeviceBatch::Set& set = run.set(row_set_);
    BRISK_CHECK(set.pixels != nullptr || set.rows.rows == 0, "row set {} has no pixels", row_set_);
    const PixelRowsForward op{options_, set.pixels, set.rows, run.output(0)};
    BRISK_RUN_OP(run, pixel_rows, op);
  }
  void backward(OpRun&) const override {}

 private:
  int row_set_;
  PixelRowsOptions options_;
};

}  // namespace

Value pixel_rows(Tape& tape, int row_set, const PixelRowsOptions& options) {
  const int64_t cols = 3 * options.patch * options.patch;
  int64_t& pixels = tape.matrices(row_set).pixels;
  BRISK_CHECK(pixels == 0 || pixels == cols, "row set {} has pixels of {} and of {} columns", row_set, pixels, cols);
  pixels = cols;
  const Value y = tape.add_value({.row_set = row_set, .cols = cols, .type = tape.activation_type()});
  Node node;
  node.op = std::make_unique<PixelRowsOp>(row_set, options);
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
