// Which phase of the ledger the parts of a training step are charged to.
#include "base/ledger.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;
using test::ManualClock;
using test::TickingClock;

constexpr double kNap = 0.5;  // seconds; nothing else moves the clock

// `naps` of them in one phase, and no time in any other.
void expect_naps_in(const Ledger::Totals& totals, Phase napped, int naps = 1) {
  for (int p = 0; p < kPhases; ++p) {
    const Phase phase = static_cast<Phase>(p);
    EXPECT_EQ(totals.seconds(phase), phase == napped ? naps * kNap : 0)
        << fmt::format("{} naps in {}: what of {}?", naps, phase_name(napped), phase_name(phase));
  }
}

// Naps inside ops, run by a program as a model's ops are.

class NappingOp final : public Op {
 public:
  NappingOp(ManualClock& clock, OpFamily family, bool naps_forward, bool naps_backward)
      : clock_(clock), family_(family), naps_forward_(naps_forward), naps_backward_(naps_backward) {}
  OpFamily family() const override { return family_; }
  std::string name() const override { return "nap"; }
  void forward(OpRun&) const override {
    if (naps_forward_) clock_.advance(kNap);
  }
  void backward(OpRun&) const override {
    if (naps_backward_) clock_.advance(kNap);
  }

 private:
  ManualClock& clock_;
  OpFamily family_;
  bool naps_forward_, naps_backward_;
};

// A chain of one op of each family and a loss; the one at `place` naps.
Ledger::Totals run_chain(OpFamily napping, bool forward, int64_t checkpoint_every = 0) {
  ManualClock clock;
  Tape tape({.rows = {{8, 1, 8}}});
  Value x;
  for (const OpFamily family : {OpFamily::embedding, OpFamily::linear, OpFamily::attention, OpFamily::norm,
                                OpFamily::elementwise, OpFamily::loss}) {
    const bool naps = family == napping;
    Node node;
    node.op = std::make_unique<NappingOp>(clock, family, naps && forward, naps && !forward);
    if (x) node.inputs = {x};
    node.is_loss = family == OpFamily::loss;
    node.input_in_backward.assign(node.inputs.size(), true);
    x = tape.add_value({.cols = 4, .gradient = true});
    node.outputs = {x};
    tape.record(std::move(node));
    if (family == OpFamily::elementwise) tape.end_layer();
  }
  Program program(tape, {.checkpoint_every = checkpoint_every});
  program.allocate(cpu_device());
  DeviceBatch batch;
  batch.sets.resize(1);
  batch.sets[0].rows.rows = 8;
  Ledger ledger(Phase::other, clock);
  program.forward(batch, ledger);
  program.backward(batch, ledger);
  return ledger.totals();
}

TEST(Ledger, ANapInAnOpIsInThePhaseOfItsFamilyAndDirectionAlone) {
  for (const OpFamily family :
       {OpFamily::embedding, OpFamily::linear, OpFamily::attention, OpFamily::norm, OpFamily::elementwise}) {
    expect_naps_in(run_chain(family, true), forward_phase(family));
    expect_naps_in(run_chain(family, false), backward_phase(family));
  }
  // A loss makes itself and its gradients in one go, in backward; its forward is not run while training.
  expect_naps_in(run_chain(OpFamily::loss, false), Phase::loss);
  expect_naps_in(run_chain(OpFamily::loss, true), Phase::loss, 0);
}

TEST(Ledger, RecomputationIsPartOfBackward) {
  const Ledger::Totals totals = run_chain(OpFamily::norm, true, 1);
  EXPECT_EQ(totals.seconds(Phase::forward_norm), kNap);
  EXPECT_EQ(totals.seconds(Phase::backward_norm), kNap);
}

// Naps injected into a real training step through its device: in every copy to it, or in the n-th op.
class NappingDevice final : public Device {
 public:
  explicit NappingDevice(ManualClock& clock) : clock_(clock) {}
  const char* name() const override { return "napping"; }
  void* allocate(int64_t bytes) override { return cpu_device().allocate(bytes); }
  void release(void* data, int64_t bytes) override { cpu_device().release(data, bytes); }
  void copy_in(void* device, const void* host, int64_t bytes) override {
    if (naps_in_copies) clock_.advance(kNap);
    cpu_device().copy_in(device, host, bytes);
  }
  void copy_out(void* host, const void* device, int64_t bytes) override { cpu_device().copy_out(host, device, bytes); }
  void open() override {
    if (opened++ == nap_at) clock_.advance(kNap);
  }
  bool naps_in_copies = false;
  int opened = 0;
  int nap_at = -1;

 private:
  ManualClock& clock_;
};

class NappingStep : public ::testing::Test {
 protected:
  NappingStep() : options_(tiny_options(gpt_shape())) {
    options_.device = &device_;
    engine_ = std::make_unique<Engine>(options_);
    engine_->initialise(1);
    steps_ = packed_steps(corpus_, 1, 4, 4);
    step(-1);
  }
  // One step, with a nap in access `nap_at`.
  Ledger::Totals step(int nap_at) {
    device_.opened = 0;
    device_.nap_at = nap_at;
    Ledger ledger(Phase::other, clock_);
    engine_->train_step(steps_[0], 1, 0.0, ledger);
    return ledger.totals();
  }
  void expect_nap_in(int nap_at, Phase phase) { expect_naps_in(step(nap_at), phase); }

  Threads threads_{1};
  Corpus corpus_ = tiny_corpus(20);
  ManualClock clock_;
  NappingDevice device_{clock_};
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
  std::vector<StepBatch> steps_;
};

TEST_F(NappingStep, CopiesOpsClippingAndOptimizerAreEachInTheirPhase) {
  device_.naps_in_copies = true;
  expect_naps_in(step(-1), Phase::copy, 5);
  device_.naps_in_copies = false;
  const int accesses = device_.opened;
  ASSERT_GT(accesses, 20);
  // The step's numbers are accessed before the first op, after the last one, and before and after the update.
  expect_nap_in(1, Phase::forward_embedding);
  expect_nap_in(2, Phase::forward_norm);
  expect_nap_in(3, Phase::forward_linear);
  expect_nap_in(4, Phase::forward_attention);
  expect_nap_in(accesses - 7, Phase::backward_embedding);
  expect_nap_in(accesses - 6, Phase::copy);      // the loss
  expect_nap_in(accesses - 4, Phase::clipping);  // the norm
  expect_nap_in(accesses - 3, Phase::clipping);  // the decision
  expect_nap_in(accesses - 2, Phase::optimizer);
}

TEST_F(NappingStep, AnEvaluationIsEvaluationWhateverItRuns) {
  for (const bool copies : {true, false}) {
    device_.naps_in_copies = copies;
    device_.opened = 0;
    device_.nap_at = copies ? -1 : 3;
    Ledger ledger(Phase::other, clock_);
    engine_->evaluate(*corpus_.sequences(), ledger, 4);
    expect_naps_in(ledger.totals(), Phase::evaluation, copies ? 5 : 1);
  }
}

TEST_F(NappingStep, PhasesAddUpToTheTimeOfTheStep) {
  const TickingClock clock(1e-9);
  Ledger ledger(Phase::other, clock);
  const int64_t start = clock.nanoseconds();
  const Ledger::Totals before = ledger.totals();
  engine_->train_step(steps_[0], 1, 1e-3, ledger);
  const Ledger::Totals spent = ledger.totals() - before;
  int64_t sum = 0;
  for (const int64_t nanoseconds : spent.nanoseconds) sum += nanoseconds;
  EXPECT_EQ(sum, clock.nanoseconds() - start - 2);  // the two readings around it
  EXPECT_GT(sum, 40);
}

}  // namespace
}  // namespace brisk
