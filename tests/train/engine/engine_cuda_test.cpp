// Whole training steps on a GPU against the same on the CPU.
#include <gtest/gtest.h>

#include <limits>

#include "infer/answer/generate.h"
#include "ops/tape/gpu_workspace.h"
#include "support/tiny_job.h"
#include "tensor/device.h"
#include "train/engine/tune_micro_batch.h"

namespace brisk {
namespace {

using namespace brisk::testing;

class OnAGpu : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
  }
  EngineOptions options_ = tiny_options(GetParam().config);
  const Corpus corpus_ = tiny_corpus(2000);
  Threads threads_{1};
};

TEST_P(OnAGpu, TheLossCurveIsTheCpusOver200Steps) {
  const Corpus corpus = tiny_corpus(200 * 32);
  const std::vector<StepBatch> steps = packed_steps(corpus, 200, 32, 32);
  for (const bool muon : {false, true}) {
    SCOPED_TRACE(muon ? "muon" : "adamw");
    if (muon) options_.muon = MuonOptions{};
    options_.device = nullptr;
    const Curve cpu = train_curve(options_, steps);
    options_.device = &cuda_device();
    const Curve gpu = train_curve(options_, steps);
    expect_same_curve(gpu, cpu, 1e-3);
    EXPECT_NEAR(gpu.losses.front(), cpu.losses.front(), 1e-5);
    EXPECT_NEAR(gpu.gradient_norms.front(), cpu.gradient_norms.front(), 1e-5 * cpu.gradient_norms.front());
  }
}

TEST_P(OnAGpu, SeveralMicroBatchesAreOneStep) {
  options_.device = &cuda_device();
  const Curve whole = train_curve(options_, packed_steps(corpus_, 4, 32, 32));
  const Curve divided = train_curve(options_, packed_steps(corpus_, 4, 32, 8));
  expect_same_curve(divided, whole, 1e-5);
}

TEST_P(OnAGpu, Bf16FollowsTheCpus) {
  options_.compute_type = DType::bf16;
  const std::vector<StepBatch> steps = packed_steps(corpus_, 20, 32, 16);
  options_.device = nullptr;
  const Curve cpu = train_curve(options_, steps);
  options_.device = &cuda_device();
  const Curve gpu = train_curve(options_, steps);
  expect_same_curve(gpu, cpu, 2e-2);
}

TEST_P(OnAGpu, TwoRunsHaveTheSameBits) {
  options_.device = &cuda_device();
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.compute_type = type;
    const std::vector<StepBatch> steps = packed_steps(corpus_, 6, 32, 8);
    expect_same_bits(train_curve(options_, steps), train_curve(options_, steps));
  }
}

TEST_P(OnAGpu, RecomputingActivationsChangesNothing) {
  options_.device = &cuda_device();
  const std::vector<StepBatch> steps = packed_steps(corpus_, 4, 32, 16);
  const Curve kept = train_curve(options_, steps);
  options_.checkpoint_every = 1;
  expect_same_bits(train_curve(options_, steps), kept);
}

TEST_P(OnAGpu, EvaluationAndGenerationAreTheCpus) {
  const auto run = [&](Device* device, EvaluationResult& quality) {
    options_.device = device;
    Engine engine(options_);
    engine.initialise(options_.seed);
    Ledger ledger;
    quality = engine.evaluate(*corpus_.sequences(), ledger, 200);
    const LetterTokenizer tokenizer;
    Generator generator(as_decoder(engine.model()), engine.parameters(), tokenizer);
    return generator.generate("abc", {.max_tokens = 30, .temperature = 0, .stop_at_end = false}).ids;
  };
  EvaluationResult cpu, gpu;
  const auto text = run(nullptr, cpu);
  EXPECT_EQ(run(&cuda_device(), gpu), text);
  EXPECT_NEAR(gpu.metrics.value("loss"), cpu.metrics.value("loss"), 1e-5 * cpu.metrics.value("loss"));
  EXPECT_EQ(gpu.targets, cpu.targets);
}

TEST_P(OnAGpu, AStepThatIsNotFiniteOrAboveALimitChangesNothing) {
  options_.device = &cuda_device();
  Engine engine(options_);
  engine.initialise(options_.seed);
  const std::vector<StepBatch> steps = packed_steps(corpus_, 1, 32, 32);
  const std::vector<float> before = values_of(cuda_device(), engine.parameters().flat_master());
  Ledger ledger;
  EXPECT_FALSE(engine.train_step(steps[0], 1, 1e-3, ledger, {.gradient_norm = 1e-6}).updated);
  EXPECT_FALSE(engine.train_step(steps[0], 1, 1e-3, ledger, {.loss = 1e-6}).updated);
  EXPECT_EQ(values_of(cuda_device(), engine.parameters().flat_master()), before);
  EXPECT_TRUE(engine.train_step(steps[0], 1, 1e-3, ledger).updated);
  EXPECT_NE(values_of(cuda_device(), engine.parameters().flat_master()), before);
}

// As the trainer runs it: the next batch is there before this step's numbers are.
Curve train_ahead(const EngineOptions& options, const std::vector<StepBatch>& steps, int64_t evaluate_after = 0) {
  Engine engine(options);
  engine.initialise(options.seed);
  Ledger ledger;
  Curve curve;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto next = [&]() -> const StepBatch* { return i + 1 < steps.size() ? &steps[i + 1] : nullptr; };
    const auto step = static_cast<int64_t>(i) + 1;
    const StepResult result = engine.train_step(steps[i], step, 3e-3, ledger, {}, next);
    curve.losses.push_back(result.loss_sum / static_cast<double>(result.tokens));
    curve.gradient_norms.push_back(result.gradient_norm);
    curve.correct.push_back(result.correct);
    if (step == evaluate_after) engine.evaluate(*tiny_corpus(200).sequences(), ledger);
  }
  curve.masters = values_of(cuda_device(), engine.parameters().flat_master());
  return curve;
}

TEST_P(OnAGpu, BeginningWithTheNextBatchChangesNothing) {
  options_.device = &cuda_device();
  for (const int micro_batch : {32, 8}) {
    SCOPED_TRACE(micro_batch);
    const std::vector<StepBatch> steps = packed_steps(corpus_, 12, 32, micro_batch);
    const Curve waiting = train_curve(options_, steps);
    expect_same_bits(train_ahead(options_, steps), waiting);
    expect_same_bits(train_ahead(options_, steps, 5), waiting);  // and an evaluation between, in the same memory
  }
}

TEST_P(OnAGpu, WhatWasBegunIsForgottenWhenParametersChange) {
  options_.device = &cuda_device();
  const std::vector<StepBatch> steps = packed_steps(corpus_, 6, 32, 32);
  Engine engine(options_);
  Ledger ledger;
  const auto run = [&](bool ahead) {
    engine.initialise(options_.seed);
    std::vector<double> losses;
    for (size_t i = 0; i < 4; ++i) {
      const auto next = [&]() -> const StepBatch* { return ahead ? &steps[5] : nullptr; };
      losses.push_back(engine.train_step(steps[i], static_cast<int64_t>(i) + 1, 0.0, ledger, {}, next).loss());
      engine.parameters_changed();  // as after a rollback: the next call is of another batch
    }
    return losses;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_P(OnAGpu, AfterAStepThatIsNotFiniteItsGradientIsThere) {
  options_.device = &cuda_device();
  const std::vector<StepBatch> steps = packed_steps(corpus_, 6, 32, 32);
  Engine engine(options_);
  engine.initialise(options_.seed);
  Ledger ledger;
  for (int64_t step = 1; step <= 4; ++step) {
    const auto next = [&]() -> const StepBatch* { return &steps[static_cast<size_t>(step)]; };
    engine.train_step(steps[static_cast<size_t>(step - 1)], step, 1e-3, ledger, {}, next);
  }
  const Parameter& broken = *engine.parameters().all().front();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  cuda_device().copy_in(broken.master.data, &nan, sizeof(nan));
  engine.parameters_changed();
  const StepResult result = engine.train_step(steps[4], 5, 1e-3, ledger, {}, [&] { return &steps[5]; });
  EXPECT_FALSE(result.finite());
  EXPECT_FALSE(result.updated);
  EXPECT_NE(engine.first_not_finite(), "");
}

TEST_P(OnAGpu, StepsTakeNoMoreMemoryThanPlanned) {
  options_.device = &cuda_device();
  Device& device = cuda_device();
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.compute_type = type;
    const int64_t before = device.memory().allocated;
    const int64_t workspace_before = cuda::workspace_size();
    device.forget_peak();
    const MemoryPlan plan = plan_memory(options_);
    {
      const std::vector<StepBatch> steps = packed_steps(corpus_, 6, 32, 8);
      train_ahead(options_, steps, 3);
    }
    EXPECT_LE(cuda::workspace_size(), std::max(workspace_before, plan.workspace_bytes - kGemmWorkspaceBytes));
    // Every buffer is rounded up to 2 MiB, and small ones are not in the plan.
    EXPECT_LE(device.memory().peak_allocated - before, plan.total() + plan.library_bytes + (int64_t{64} << 20));
    EXPECT_LE(device.memory().allocated - before, plan.workspace_bytes) << "what an engine had is given back";
  }
}

TEST_P(OnAGpu, IsSettledWhenItsSizesHaveCome) {
  options_.device = &cuda_device();
  Engine engine(options_);
  engine.initialise(options_.seed);
  Ledger ledger;
  const auto settled_after = [&](const StepBatch& step, int runs) {
    for (int i = 0; i < runs; ++i) engine.train_step(step, 1, 0.0, ledger);
    return engine.settled_passes();
  };
  const StepBatch small = packed_steps(corpus_, 1, 8, 8).front(), large = packed_steps(corpus_, 1, 32, 32).front();
  EXPECT_EQ(settled_after(small, 1), 0) << "everything is new";
  EXPECT_EQ(settled_after(small, 1), 1) << "nothing new, op by op";
  EXPECT_EQ(settled_after(small, 1), 0) << "recorded";
  EXPECT_EQ(settled_after(small, 5), 5);
  EXPECT_EQ(settled_after(large, 1), 0) << "another size";
  EXPECT_EQ(settled_after(large, 1), 0) << "which is recorded";
  EXPECT_EQ(settled_after(large, 2), 2);
  EXPECT_EQ(settled_after(small, 1), 3) << "what came before is known still";
}

TEST_P(OnAGpu, AMicroBatchIsChosenByTimingAndLeavesNothingBehind) {
  Device& device = cuda_device();
  options_.device = &device;
  options_.capacity.rows = 1024;
  cuda::release_workspaces();
  const int64_t before = device.memory().allocated;
  std::vector<int64_t> tried;
  const auto fits = [&](const EngineOptions& sized) {
    tried.push_back(sized.capacity.rows);
    EXPECT_EQ(device.memory().allocated, before) << "the size before gave back what it had";
    return sized.capacity.rows <= 1024;
  };
  const MicroBatchChoice choice = measure_micro_batch(options_, corpus_.sequences(), {.sequences_per_step = 200}, fits);
  EXPECT_EQ(tried, (std::vector<int64_t>{1024, 512, 2048}));
  EXPECT_TRUE(choice.tokens == 512 || choice.tokens == 1024) << choice.tokens;
  for (const char* part : {"fastest measured", "512 ", "1024 ", "2048 does not fit"})
    EXPECT_NE(choice.reason.find(part), std::string::npos) << choice.reason;
  EXPECT_EQ(device.memory().allocated, before);
  // And training goes on as if nothing had been.
  const std::vector<StepBatch> steps = packed_steps(corpus_, 6, 32, 8);
  const Curve after = train_curve(options_, steps);
  expect_same_bits(train_curve(options_, steps), after);
}

INSTANTIATE_TEST_SUITE_P(Shapes, OnAGpu, ::testing::ValuesIn(both_shapes()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace brisk
