// An op in one file (docs/extending.md): what it computes, its gradient, and how it is recorded on the tape. It is read by
// several ops and checked against finite differences without anything else in brisk knowing it.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "ops/optimizer/parameters.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"
#include "support/numeric.h"
#include "tensor/program.h"

namespace brisk {
namespace {

// softsign: y = x / (1 + |x|), dx = dy / (1 + |x|)^2. A reference alone, for f32 in memory that the host can read.
class SoftsignOp final : public OverwritingOp {
 public:
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "softsign"; }
  void forward(OpRun& run) const override {
    const Tensor x = run.input(0), y = run.output(0);
    for (int64_t i = 0; i < x.rows * x.cols; ++i) y.f32()[i] = x.f32()[i] / (1 + std::abs(x.f32()[i]));
  }
  void backward(OpRun& run) const override {
    const Tensor x = run.input(0), dy = run.output_gradient(0), dx = run.input_gradient(0);
    for (int64_t i = 0; i < x.rows * x.cols; ++i) {
      const float below = 1 + std::abs(x.f32()[i]);
      dx.f32()[i] = dy.f32()[i] / (below * below);
    }
  }
};

Value softsign(Tape& tape, Value x) {
  const Value y = make_value(tape, x, tape.spec(x).cols, tape.spec(x).type, true);
  Node node;
  node.op = std::make_unique<SoftsignOp>();
  node.inputs = {x};
  node.outputs = {y};
  node.input_in_backward = {true};  // backward reads x: the plan keeps it, or computes it again
  tape.record(std::move(node));
  return y;
}

TEST(AToyOp, HasItsGradientWhereSeveralOpsReadItsInput) {
  constexpr int64_t kVocabulary = 7, kWidth = 8;
  ParameterStore store;
  const Initial normal{Initial::Kind::normal, 0.5};
  Parameter* table = store.add({.name = "table.weight", .rows = kVocabulary, .cols = kWidth, .initial = normal});
  Parameter* head =
      store.add({.name = "head.weight", .rows = kVocabulary, .cols = kWidth, .multiplies = true, .initial = normal});
  Tape tape({.rows = {{16, 4, 8}}});
  const Value x = embedding(tape, 0, table);
  const Value y = add(tape, multiply(tape, softsign(tape, x), x), softsign(tape, x));  // x is read three times
  const LossValues loss = linear_cross_entropy(tape, y, head, {});
  Program program(tape, {.backend = Backend::reference});
  store.allocate(cpu_device(), program.completion_order(), DType::f32, ParameterStore::Purpose::training);
  store.initialise(3);
  refresh_compute_copies(store);
  program.allocate(cpu_device());

  const testing::Ragged ragged({5, 2});
  const std::vector<int32_t> tokens = {0, 1, 2, 3, 4, 5, 6}, targets = {1, 2, 3, 4, 5, 6, 0};
  DeviceBatch batch;
  batch.sets.resize(1);
  batch.sets[0].rows = ragged.view();
  batch.sets[0].tokens = tokens.data();
  batch.sets[0].targets = targets.data();
  batch.loss_scale = 1.0f / 7;
  const auto run = [&] {
    Ledger ledger;
    program.forward(batch, ledger);
    program.backward(batch, ledger);
    return program.value(loss.sums, batch).f32()[0] * batch.loss_scale;
  };

  run();
  float* values = table->master.f32();
  const std::vector<float> gradient(table->gradient.f32(), table->gradient.f32() + kVocabulary * kWidth);
  for (size_t entry = 0; entry < gradient.size(); entry += 5) {
    constexpr float kShift = 0.01f;
    const float before = values[entry];
    values[entry] = before + kShift;
    const double above = run();
    values[entry] = before - kShift;
    const double below = run();
    values[entry] = before;
    EXPECT_NEAR((above - below) / (2 * kShift), gradient[entry], 1e-3) << entry;
  }
}

}  // namespace
}  // namespace brisk
