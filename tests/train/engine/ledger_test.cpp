// Time is a ledger: what is spent in a phase appears in that phase and nowhere else, and everything adds up.
#include "base/ledger.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <thread>

#include "support/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;
using Clock = std::chrono::steady_clock;

constexpr double kNap = 0.03;  // seconds: a step of the sanitized build takes some milliseconds of its own

void nap() { std::this_thread::sleep_for(std::chrono::duration<double>(kNap)); }

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

using SecondsByPhase = std::array<double, kPhases>;

// What is wrong where `naps` naps were in one phase; "" where they are in it and in no other.
std::string misplaced_naps(const SecondsByPhase& spent, Phase napped, int naps) {
  for (int p = 0; p < kPhases; ++p) {
    const Phase phase = static_cast<Phase>(p);
    const double seconds = spent[static_cast<size_t>(p)];
    if (phase == napped ? seconds < naps * kNap : seconds > 0.3 * kNap) {
      return fmt::format("{} naps of {} s in {}, but {} has {} s", naps, kNap, phase_name(napped), phase_name(phase),
                         seconds);
    }
  }
  return "";
}

// A busy machine takes the core away in any phase, and never gives time back: what counts is the least that a phase had
// in a few runs. Time that is charged to the wrong phase is charged there every time.
void expect_naps_in(const std::function<Ledger::Totals()>& run, Phase napped, int naps = 1) {
  SecondsByPhase least;
  least.fill(std::numeric_limits<double>::infinity());
  std::string complaint;
  for (int attempt = 0; attempt < 12; ++attempt) {
    const Ledger::Totals totals = run();
    for (size_t p = 0; p < least.size(); ++p) least[p] = std::min(least[p], totals.seconds(static_cast<Phase>(p)));
    complaint = misplaced_naps(least, napped, naps);
    if (complaint.empty()) return;
  }
  ADD_FAILURE() << complaint;
}

TEST(Ledger, EveryPhaseHasANameOfItsOwn) {
  std::vector<std::string_view> names;
  for (int p = 0; p < kPhases; ++p) names.push_back(phase_name(static_cast<Phase>(p)));
  for (const std::string_view name : names) {
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

TEST(Ledger, ASleepInAScopeIsInThatPhaseAlone) {
  for (int p = 0; p < kPhases; ++p) {
    const auto run = [p] {
      Ledger ledger(p == 0 ? Phase::other : Phase::start_up);
      Ledger::Scope scope(ledger, static_cast<Phase>(p));
      nap();
      return ledger.totals();
    };
    expect_naps_in(run, static_cast<Phase>(p));
  }
}

TEST(Ledger, AnInnerScopeIsTakenAwayFromTheOuterOne) {
  const auto run = [](Phase outer, Phase inner, bool naps_outside, bool naps_inside) {
    Ledger ledger;
    {
      Ledger::Scope outer_scope(ledger, outer);
      if (naps_outside) nap();
      {
        Ledger::Scope inner_scope(ledger, inner);
        if (naps_inside) nap();
      }
      if (naps_outside) nap();
    }
    return ledger.totals();
  };
  expect_naps_in([&] { return run(Phase::checkpoint, Phase::logging, true, false); }, Phase::checkpoint, 2);
  expect_naps_in([&] { return run(Phase::checkpoint, Phase::logging, false, true); }, Phase::logging);
  expect_naps_in([&] { return run(Phase::copy, Phase::copy, true, true); }, Phase::copy, 3);
}

TEST(Ledger, WhatIsOutsideEveryScopeIsOther) {
  expect_naps_in(
      [] {
        Ledger ledger;
        { Ledger::Scope scope(ledger, Phase::copy); }
        nap();
        return ledger.totals();
      },
      Phase::other);
}

TEST(Ledger, HoldChargesEverythingInsideToOnePhaseAndLetsGo) {
  const auto inside = [] {
    Ledger ledger;
    Ledger::Hold hold(ledger, Phase::evaluation);
    nap();
    {
      Ledger::Scope scope(ledger, Phase::forward_linear);
      nap();
      Ledger::Hold again(ledger, Phase::logging);
      nap();
    }
    Ledger::Scope scope(ledger, Phase::copy);
    nap();
    return ledger.totals();
  };
  expect_naps_in(inside, Phase::evaluation, 4);
  const auto afterwards = [] {
    Ledger ledger;
    { Ledger::Hold hold(ledger, Phase::evaluation); }
    Ledger::Scope scope(ledger, Phase::optimizer);
    nap();
    return ledger.totals();
  };
  expect_naps_in(afterwards, Phase::optimizer);
}

TEST(Ledger, DifferencesAndSumsOfTotalsAreByPhase) {
  Ledger ledger;
  const Ledger::Totals start = ledger.totals();
  {
    Ledger::Scope scope(ledger, Phase::data_wait);
    nap();
  }
  const Ledger::Totals middle = ledger.totals();
  {
    Ledger::Scope scope(ledger, Phase::copy);
    nap();
  }
  const Ledger::Totals end = ledger.totals();
  EXPECT_EQ((middle - start).seconds(Phase::copy), 0);
  EXPECT_EQ((end - middle).seconds(Phase::data_wait), 0);
  EXPECT_GE((end - middle).seconds(Phase::copy), kNap);
  Ledger::Totals sum = middle - start;
  sum += end - middle;
  EXPECT_EQ(sum.nanoseconds, (end - start).nanoseconds);
  EXPECT_EQ(sum.stamps, 4);
}

TEST(Ledger, AStampCostsLessThanAMicrosecond) {
  Ledger ledger;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) const Ledger::Scope scope(ledger, Phase::logging);  // two stamps
  EXPECT_LT(ledger.totals().seconds(), 1e-6 * 2 * kRounds);
}

// Sleeps inside ops, run by a program as a model's ops are.

class NappingOp final : public Op {
 public:
  NappingOp(OpFamily family, bool naps_forward, bool naps_backward)
      : family_(family), naps_forward_(naps_forward), naps_backward_(naps_backward) {}
  OpFamily family() const override { return family_; }
  std::string name() const override { return "nap"; }
  void forward(OpRun&) const override {
    if (naps_forward_) nap();
  }
  void backward(OpRun&) const override {
    if (naps_backward_) nap();
  }

 private:
  OpFamily family_;
  bool naps_forward_, naps_backward_;
};

// A chain of one op of each family and a loss; the one at `place` naps.
Ledger::Totals run_chain(OpFamily napping, bool forward, int64_t checkpoint_every = 0) {
  Tape tape({.rows = {{8, 1, 8}}});
  Value x;
  for (const OpFamily family : {OpFamily::embedding, OpFamily::linear, OpFamily::attention, OpFamily::norm,
                                OpFamily::elementwise, OpFamily::loss}) {
    const bool naps = family == napping;
    Node node;
    node.op = std::make_unique<NappingOp>(family, naps && forward, naps && !forward);
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
  Ledger ledger;
  program.forward(batch, ledger);
  program.backward(batch, ledger);
  return ledger.totals();
}

TEST(Ledger, ASleepInAnOpIsInThePhaseOfItsFamilyAndDirectionAlone) {
  for (const OpFamily family :
       {OpFamily::embedding, OpFamily::linear, OpFamily::attention, OpFamily::norm, OpFamily::elementwise}) {
    expect_naps_in([&] { return run_chain(family, true); }, forward_phase(family));
    expect_naps_in([&] { return run_chain(family, false); }, backward_phase(family));
  }
  // A loss makes itself and its gradients in one go, in backward; its forward is not run while training.
  expect_naps_in([&] { return run_chain(OpFamily::loss, false); }, Phase::loss);
  expect_naps_in([&] { return run_chain(OpFamily::loss, true); }, Phase::loss, 0);
}

TEST(Ledger, RecomputationIsPartOfBackward) {
  const Ledger::Totals totals = run_chain(OpFamily::norm, true, 1);
  EXPECT_GE(totals.seconds(Phase::forward_norm), kNap);
  EXPECT_GE(totals.seconds(Phase::backward_norm), kNap);
}

// Sleeps injected into a real training step through its device: in every copy to it, or in the n-th op.
class NappingDevice final : public Device {
 public:
  const char* name() const override { return "napping"; }
  void* allocate(int64_t bytes) override { return cpu_device().allocate(bytes); }
  void release(void* data, int64_t bytes) override { cpu_device().release(data, bytes); }
  void copy_in(void* device, const void* host, int64_t bytes) override {
    if (naps_in_copies) nap();
    cpu_device().copy_in(device, host, bytes);
  }
  void copy_out(void* host, const void* device, int64_t bytes) override { cpu_device().copy_out(host, device, bytes); }
  void open() override {
    if (opened++ == nap_at) nap();
  }
  bool naps_in_copies = false;
  int opened = 0;
  int nap_at = -1;
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
    Ledger ledger;
    engine_->train_step(steps_[0], 1, 0.0, ledger);
    return ledger.totals();
  }
  void expect_nap_in(int nap_at, Phase phase) {
    expect_naps_in([&] { return step(nap_at); }, phase);
  }

  Threads threads_{1};  // two that wait for each other on a busy machine are naps of their own
  Corpus corpus_ = tiny_corpus(20);
  NappingDevice device_;
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
  std::vector<StepBatch> steps_;
};

TEST_F(NappingStep, CopiesOpsClippingAndOptimizerAreEachInTheirPhase) {
  device_.naps_in_copies = true;
  expect_naps_in([&] { return step(-1); }, Phase::copy, 5);
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
    const auto run = [&] {
      device_.opened = 0;
      device_.nap_at = 3;
      Ledger ledger;
      engine_->evaluate(*corpus_.sequences(), ledger, 4);
      return ledger.totals();
    };
    expect_naps_in(run, Phase::evaluation);
  }
}

TEST_F(NappingStep, PhasesAddUpToTheWallTimeAndLittleIsUnaccountedFor) {
  const std::vector<StepBatch> steps = packed_steps(tiny_corpus(), 5);
  Ledger ledger;
  const Ledger::Totals start = ledger.totals();
  const Clock::time_point clock = Clock::now();
  while (seconds_since(clock) < 0.2) {
    for (const StepBatch& batch : steps) engine_->train_step(batch, 1, 1e-3, ledger);
  }
  const Ledger::Totals spent = ledger.totals() - start;
  const double wall = seconds_since(clock);
  EXPECT_NEAR(spent.seconds(), wall, 0.01 * wall);
  double sum = 0;
  for (int p = 0; p < kPhases; ++p) sum += spent.seconds(static_cast<Phase>(p));
  EXPECT_NEAR(sum, spent.seconds(), 1e-9 * kPhases);
  EXPECT_LT(spent.seconds(Phase::other), 0.05 * wall);  // of a step of a millisecond; 3 % is asked of real ones
}

}  // namespace
}  // namespace brisk
