#include <utility>

#include "base/error.h"
#include "ops/attention/relative_bias.h"
#include "ops/backend.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class RelativeBiasOp final : public Op {
 public:
  explicit RelativeBiasOp(const RelativeBuckets& buckets) : buckets_(buckets) {}
  OpFamily family() const override { return OpFamily::embedding; }
  std::string name() const override { return "relative_bias"; }
  void forward(OpRun& run) const override {
    const RelativeBiasForward op{buckets_, run.master(0), run.output(0)};
    BRISK_RUN_OP(run, relative_bias_forward, op);
  }
  void backward(OpRun& run) const override {
    if (!run.parameter_gradient(0)) return;
    const RelativeBiasBackward op{buckets_, run.output_gradient(0), run.parameter_gradient(0),
                                  run.parameter_gradient_adds(0)};
    BRISK_RUN_OP(run, relative_bias_backward, op);
  }

 private:
  RelativeBuckets buckets_;
};

}  // namespace

Value relative_bias(Tape& tape, Parameter* table, const RelativeBiasOptions& options, int64_t longest) {
  const Value y =
      tape.add_value({.fixed_rows = table->spec.cols, .cols = 2 * longest - 1, .type = DType::f32, .gradient = true});
  Node node;
  node.op = std::make_unique<RelativeBiasOp>(relative_buckets(table->spec.rows, options.distance, options.causal));
  node.outputs = {y};
  node.parameters = {table};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
