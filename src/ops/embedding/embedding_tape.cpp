#include <utility>

#include "base/error.h"
#include "base/rounding.h"
#include "ops/backend.h"
#include "ops/embedding/embedding.h"
#include "ops/rows/rows_copy.h"
#include "ops/tape/gpu_workspace.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class EmbeddingOp final : public Op {
 public:
  // Parameters: the table, then positions and types where there are any.
  EmbeddingOp(int row_set, const EmbeddingOptions& options, DropoutSite dropout)
      : row_set_(row_set),
        positions_(options.positions != nullptr ? 1 : -1),
        types_(options.types == nullptr       ? -1
               : options.positions != nullptr ? 2
                                              : 1),
        position_offset_(options.position_offset),
        scale_(static_cast<float>(options.scale)),
        several_types_(options.types != nullptr && options.types->spec.rows > 1),
        dropout_(dropout) {}
  OpFamily family() const override { return OpFamily::embedding; }
  std::string name() const override { return "embedding"; }
  void forward(OpRun& run) const override {
    EmbeddingForward op;
    op.tokens = run.set(row_set_).tokens;
    op.rows = run.set(row_set_).rows;
    op.table = run.master(0);
    if (positions_ >= 0) op.positions = run.master(positions_);
    op.position_offset = position_offset_;
    op.scale = scale_;
    if (types_ >= 0) op.type_table = run.master(types_);
    if (several_types_) op.types = run.set(row_set_).types;
    op.dropout = dropout_.at(run.batch());
    op.y = run.output(0);
    BRISK_RUN_OP(run, embedding_forward, op);
  }
  void backward(OpRun& run) const override {
    EmbeddingBackward op;
    op.tokens = run.set(row_set_).tokens;
    op.rows = run.set(row_set_).rows;
    op.dropout = dropout_.at(run.batch());
    op.dy = run.output_gradient(0);
    op.dtable = run.parameter_gradient(0);
    op.dtable_adds = run.parameter_gradient_adds(0);
    if (positions_ >= 0) {
      op.dpositions = run.parameter_gradient(positions_);
      op.dpositions_adds = run.parameter_gradient_adds(positions_);
    }
    op.position_offset = position_offset_;
    op.scale = scale_;
    if (types_ >= 0) {
      op.dtypes = run.parameter_gradient(types_);
      op.dtypes_adds = run.parameter_gradient_adds(types_);
    }
    if (several_types_) op.types = run.set(row_set_).types;
    BRISK_RUN_OP(run, embedding_backward, op);
  }
  GpuWorkspace gpu_workspace(const Tape& tape, const Node& node) const override {
    constexpr int64_t kShortestStretch = 8;
    // Rows sorted by token, and sums of stretches of them.
    const int64_t rows = tape.capacity_rows(node.outputs[0]), width = tape.spec(node.outputs[0]).cols;
    return {.shared = workspace_piece(divide_up(rows, kShortestStretch) * 2 * width * size_of(DType::f32)) +
                      8 * workspace_piece(rows * size_of(DType::i32)) + (int64_t{1} << 20)};
  }

 private:
  int row_set_;
  int positions_, types_;  // their places among the parameters; -1: none
  int64_t position_offset_;
  float scale_;
  bool several_types_;  // with one type, what the batch says of them means nothing
  DropoutSite dropout_;
};

class InputRowsOp final : public Op {
 public:
  explicit InputRowsOp(int row_set) : row_set_(row_set) {}
  OpFamily family() const override { return OpFamily::embedding; }
  std::string name() const override { return "input_rows"; }
  void forward(OpRun& run) const override {
    Tensor rows = run.output(0);
    rows.data = const_cast<void*>(run.set(row_set_).inputs);
    BRISK_CHECK(rows.data != nullptr, "the micro-batch has no inputs");
    rows.stride = rows.cols;
    BRISK_RUN_OP(run, copy_rows, rows, run.output(0), false);
  }
  void backward(OpRun&) const override { BRISK_CHECK(false, "rows from outside have no gradient"); }

 private:
  int row_set_;
};

}  // namespace

Value embedding(Tape& tape, int row_set, Parameter* table, const EmbeddingOptions& options) {
  const Value y = tape.add_value({.row_set = row_set, .cols = table->spec.cols, .type = DType::f32, .gradient = true});
  Node node;
  node.op = std::make_unique<EmbeddingOp>(row_set, options, DropoutSite(tape, options.dropout));
  node.outputs = {y};
  node.parameters = {table};
  if (options.positions != nullptr) node.parameters.push_back(options.positions);
  if (options.types != nullptr) node.parameters.push_back(options.types);
  tape.record(std::move(node));
  return y;
}

Value input_rows(Tape& tape, int row_set, int64_t cols) {
  const Value y = tape.add_value({.row_set = row_set, .cols = cols, .type = tape.activation_type()});
  tape.matrices(row_set).inputs = cols;
  Node node;
  node.op = std::make_unique<InputRowsOp>(row_set);
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
