#include <utility>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/rows/rows_copy.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

// Inputs: a, then b; or a alone, with a parameter for b.
class CombineOp final : public Op {
 public:
  CombineOp(Combine::Kind kind, bool by_parameter) : kind_(kind), by_parameter_(by_parameter) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return kind_ == Combine::Kind::add ? "add" : "multiply"; }
  void forward(OpRun& run) const override {
    const Combine op{kind_, run.input(0), b_of(run), run.output(0)};
    BRISK_RUN_OP(run, combine, op);
  }
  void backward(OpRun& run) const override {
    const Tensor dy = run.output_gradient(0), da = run.input_gradient(0);
    if (da) contribute(run, dy, b_of(run), da, run.input_gradient_adds(0));
    if (by_parameter_) {
      const Tensor dvector = run.parameter_gradient(0);
      if (!dvector) return;
      const SumRows op{dy, other_factor(run.input(0)), dvector, run.scratch(DType::f32, kSumRowsParts, dy.cols),
                       run.parameter_gradient_adds(0)};
      BRISK_RUN_OP(run, sum_rows, op);
      return;
    }
    const Tensor db = run.input_gradient(1);
    if (!db) return;
    if (db.cols == dy.cols) return contribute(run, dy, run.input(0), db, run.input_gradient_adds(1));
    const SumColumns op{dy, other_factor(run.input(0)), db, run.input_gradient_adds(1)};
    BRISK_RUN_OP(run, sum_columns, op);
  }

 private:
  Tensor b_of(const OpRun& run) const { return by_parameter_ ? run.master(0) : run.input(1); }
  Tensor other_factor(const Tensor& other) const { return kind_ == Combine::Kind::add ? Tensor{} : other; }
  // The gradient of one operand is dy, times the other operand in a product.
  void contribute(OpRun& run, const Tensor& dy, const Tensor& other, const Tensor& gradient, bool adds) const {
    if (kind_ == Combine::Kind::add) {
      BRISK_RUN_OP(run, copy_rows, dy, gradient, adds);
      return;
    }
    const Combine op{Combine::Kind::multiply, dy, other, gradient, adds};
    BRISK_RUN_OP(run, combine, op);
  }
  Combine::Kind kind_;
  bool by_parameter_;
};

class SumColumnsOp final : public Op {
 public:
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "sum_columns"; }
  void forward(OpRun& run) const override {
    const SumColumns op{run.input(0), {}, run.output(0)};
    BRISK_RUN_OP(run, sum_columns, op);
  }
  void backward(OpRun& run) const override {
    const Combine op{Combine::Kind::add, {}, run.output_gradient(0), run.input_gradient(0), run.input_gradient_adds(0)};
    BRISK_RUN_OP(run, combine, op);
  }
};

class ColumnsOp final : public Op {
 public:
  ColumnsOp(int64_t first, int64_t count) : first_(first), count_(count) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "columns"; }
  void forward(OpRun& run) const override {
    BRISK_RUN_OP(run, copy_rows, run.input(0).columns(first_, count_), run.output(0), false);
  }
  void backward(OpRun& run) const override {
    const Tensor dx = run.input_gradient(0);
    const bool adds = run.input_gradient_adds(0);
    if (!adds) {
      BRISK_RUN_OP(run, clear_rows, dx.columns(0, first_));
      BRISK_RUN_OP(run, clear_rows, dx.columns(first_ + count_, dx.cols - first_ - count_));
    }
    BRISK_RUN_OP(run, copy_rows, run.output_gradient(0), dx.columns(first_, count_), adds);
  }

 private:
  int64_t first_, count_;
};

class ConcatenateOp final : public Op {
 public:
  explicit ConcatenateOp(std::vector<int64_t> widths) : widths_(std::move(widths)) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "concatenate"; }
  void forward(OpRun& run) const override {
    int64_t first = 0;
    for (size_t i = 0; i < widths_.size(); first += widths_[i++]) {
      BRISK_RUN_OP(run, copy_rows, run.input(static_cast<int>(i)), run.output(0).columns(first, widths_[i]), false);
    }
  }
  void backward(OpRun& run) const override {
    int64_t first = 0;
    for (size_t i = 0; i < widths_.size(); first += widths_[i++]) {
      const int input = static_cast<int>(i);
      const Tensor dx = run.input_gradient(input), dy = run.output_gradient(0).columns(first, widths_[i]);
      if (dx) BRISK_RUN_OP(run, copy_rows, dy, dx, run.input_gradient_adds(input));
    }
  }

 private:
  std::vector<int64_t> widths_;
};

bool have_the_same_rows(const ValueSpec& a, const ValueSpec& b) {
  return a.row_set == b.row_set && a.fixed_rows == b.fixed_rows;
}

Value record_combine(Tape& tape, Combine::Kind kind, Value a, Value b, Parameter* vector) {
  const ValueSpec spec = tape.spec(a);
  Node node;
  node.op = std::make_unique<CombineOp>(kind, vector != nullptr);
  node.inputs = {a};
  if (vector != nullptr) {
    BRISK_CHECK(vector->spec.rows == 1 && vector->spec.cols == spec.cols, "{}: [{}, {}] for {} columns",
                vector->spec.name, vector->spec.rows, vector->spec.cols, spec.cols);
    node.parameters = {vector};
    node.backward_scratch = kSumRowsParts * spec.cols * size_of(DType::f32);
  } else {
    BRISK_CHECK(have_the_same_rows(spec, tape.spec(b)) && spec.cols % tape.spec(b).cols == 0,
                "{}: {} columns of row set {} for {} of row set {}", node.op->name(), tape.spec(b).cols,
                tape.spec(b).row_set, spec.cols, spec.row_set);
    node.inputs.push_back(b);
  }
  node.outputs = {make_value(tape, a, spec.cols, spec.type, true)};
  node.input_in_backward.assign(node.inputs.size(), kind == Combine::Kind::multiply);
  if (kind == Combine::Kind::add) node.residual = 0;
  const Value y = node.outputs[0];
  tape.record(std::move(node));
  return y;
}

// An op of one value whose backward reads neither input nor output.
template <typename RecordedOp>
Value record_columns(Tape& tape, std::vector<Value> inputs, int64_t cols, RecordedOp op) {
  const Value y = make_value(tape, inputs[0], cols, tape.spec(inputs[0]).type, true);
  Node node;
  node.op = std::make_unique<RecordedOp>(std::move(op));
  node.inputs = std::move(inputs);
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

}  // namespace

Value add(Tape& tape, Value a, Value b) { return record_combine(tape, Combine::Kind::add, a, b, nullptr); }
Value add(Tape& tape, Value x, Parameter* vector) { return record_combine(tape, Combine::Kind::add, x, {}, vector); }
Value multiply(Tape& tape, Value a, Value b) { return record_combine(tape, Combine::Kind::multiply, a, b, nullptr); }
Value multiply(Tape& tape, Value x, Parameter* vector) {
  return record_combine(tape, Combine::Kind::multiply, x, {}, vector);
}

Value sum_columns(Tape& tape, Value x, int64_t groups) {
  const int64_t cols = tape.spec(x).cols;
  BRISK_CHECK(groups > 0 && cols % groups == 0, "sum_columns: {} columns in {} groups", cols, groups);
  return record_columns(tape, {x}, groups, SumColumnsOp());
}

Value columns(Tape& tape, Value x, int64_t first, int64_t count) {
  const int64_t cols = tape.spec(x).cols;
  BRISK_CHECK(first >= 0 && count > 0 && first + count <= cols, "columns [{}, {}) of {}", first, first + count, cols);
  return record_columns(tape, {x}, count, ColumnsOp(first, count));
}

Value concatenate(Tape& tape, const std::vector<Value>& parts) {
  BRISK_CHECK(!parts.empty(), "nothing to concatenate");
  std::vector<int64_t> widths;
  int64_t cols = 0;
  for (const Value part : parts) {
    BRISK_CHECK(have_the_same_rows(tape.spec(part), tape.spec(parts[0])), "concatenate: parts with different rows");
    widths.push_back(tape.spec(part).cols);
    cols += widths.back();
  }
  return record_columns(tape, parts, cols, ConcatenateOp(std::move(widths)));
}

}  // namespace brisk
