// What a training step tells others of: complete gradients as backward goes on, and what several processes agree on.
#include "train/engine/training_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "support/numeric.h"
#include "support/scratch_folder.h"
#include "support/tiny_job.h"
#include "train/engine/engine.h"
#include "train/engine/process_group.h"

namespace brisk {
namespace {

using namespace brisk::testing;

class GradientReadyTest : public ::testing::TestWithParam<Shape> {
 protected:
  // Two steps of `options_`: every trained parameter is announced once in each, in the order of the flat arrays, with
  // the gradient that the update reads.
  void expect_announcements(int per_micro_batch) {
    struct Announced {
      std::string name;
      std::vector<float> gradient;
    };
    std::vector<Announced> announced;
    options_.gradient_ready = [&](Parameter& parameter) {
      announced.push_back({parameter.spec.name, values_of(cpu_device(), parameter.gradient)});
    };
    Engine engine(options_);
    engine.initialise(options_.seed);
    std::vector<const Parameter*> trained;
    for (const Parameter* parameter : engine.parameters().flat_order()) {
      if (parameter->spec.trained) trained.push_back(parameter);
    }
    Ledger ledger;
    int64_t number = 0;
    for (const StepBatch& step : packed_steps(corpus_, 2, 32, per_micro_batch)) {
      announced.clear();
      ASSERT_TRUE(engine.train_step(step, ++number, 1e-3, ledger).updated);
      ASSERT_EQ(announced.size(), trained.size());
      for (size_t i = 0; i < trained.size(); ++i) {
        EXPECT_EQ(announced[i].name, trained[i]->spec.name) << i;
        EXPECT_EQ(announced[i].gradient, values_of(cpu_device(), trained[i]->gradient)) << announced[i].name;
      }
    }
  }

  Threads threads_{1};
  EngineOptions options_ = tiny_options(GetParam().config);  // GPT's shape has a tied embedding
  Corpus corpus_ = tiny_corpus();
};
INSTANTIATE_TEST_SUITE_P(Shapes, GradientReadyTest, ::testing::ValuesIn(both_shapes()),
                         [](const auto& info) { return info.param.name; });

TEST_P(GradientReadyTest, ComesOnceAStepForEachParameterWhenItsGradientIsFinal) { expect_announcements(32); }

TEST_P(GradientReadyTest, ComesWithTheLastOfSeveralMicroBatches) { expect_announcements(8); }

TEST_P(GradientReadyTest, ComesLikewiseWhereActivationsAreRecomputed) {
  options_.checkpoint_every = 1;
  expect_announcements(16);
}

TEST_P(GradientReadyTest, ComesForAdaptersAloneWhereTheRestIsFrozen) {
  decoder_of(options_).lora_rank = 2;
  expect_announcements(16);
}

// A process beside which another has the same batch and the same loss.
class TwoAlike : public ProcessGroup {
 public:
  double sum(double own) override { return 2 * own; }
  void sum(StepState& step) override {
    ++decisions;
    StepNumbers& numbers = *step.numbers();
    for (double* number : {&numbers.loss_sum, &numbers.weight_sum, &numbers.correct, &numbers.targets}) *number *= 2;
    numbers.squared_norm *= 4;  // of the sum of two gradients that are alike
  }
  int decisions = 0;

 protected:
  double first(double own) override { return own; }
};

TEST(ProcessGroup, SumsTargetsBeforeThePassAndTheNormBeforeTheDecision) {
  const Threads one_thread(1);
  EngineOptions options = tiny_options(gpt_shape());
  const std::vector<StepBatch> steps = packed_steps(tiny_corpus(), 1);
  const auto run = [&](ProcessGroup* processes, const UpdateLimits& limits, std::vector<float>& gradient) {
    options.processes = processes;
    Engine engine(options);
    engine.initialise(options.seed);
    Ledger ledger;
    const StepResult result = engine.train_step(steps[0], 1, 1e-3, ledger, limits);
    gradient = values_of(cpu_device(), engine.parameters().flat_gradient());
    return result;
  };
  std::vector<float> alone, halved;
  const StepResult single = run(nullptr, {}, alone);
  TwoAlike both;
  const StepResult shared = run(&both, {}, halved);
  EXPECT_EQ(both.decisions, 1);
  for (float& value : halved) value *= 2;  // each divides by the targets of both
  EXPECT_LE(distance(halved, alone), 1e-5);
  EXPECT_NEAR(shared.gradient_norm, single.gradient_norm, 1e-5 * single.gradient_norm);
  EXPECT_EQ(shared.loss(), single.loss());
  EXPECT_EQ(shared.targets, 2 * single.targets);
  EXPECT_EQ(shared.tokens, 2 * single.tokens);
  EXPECT_EQ(shared.sequences, 2 * single.sequences);
  EXPECT_FALSE(run(&both, {.gradient_norm = 0.9 * single.gradient_norm}, halved).updated);
  EXPECT_TRUE(run(&both, {.gradient_norm = 1.1 * single.gradient_norm}, halved).updated);
}

TEST(ProcessGroup, OfOneProcessReturnsWhatItIsGiven) {
  ProcessGroup& alone = single_process();
  EXPECT_EQ(alone.sum(0.1), 0.1);
  EXPECT_EQ(alone.broadcast(0.1), 0.1);
  EXPECT_EQ(alone.broadcast(true), true);
  EXPECT_EQ(alone.broadcast(int64_t{1} << 40), int64_t{1} << 40);
  EXPECT_EQ(alone.broadcast(DType::bf16), DType::bf16);
}

TEST(MemoryPlan, KnowsTheBytesOfACheckpointWithOneMomentOfMuonsMatrices) {
  for (const bool muon : {false, true}) {
    EngineOptions options = tiny_options(llama_shape());
    if (muon) options.muon = MuonOptions{};
    Engine engine(options);
    engine.initialise(1);
    const test::ScratchFolder folder;
    const int64_t bytes = save_checkpoint(folder.path(), engine.parameters(), CheckpointState{.step = 1}).bytes;
    const int64_t planned = plan_memory(options).saved_bytes;
    EXPECT_GE(bytes, planned) << muon;
    EXPECT_LE(bytes, planned + (int64_t{1} << 14)) << muon;  // headers and the state
  }
}

}  // namespace
}  // namespace brisk
