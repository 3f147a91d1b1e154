// Whole training steps on a card against the same on the CPU.
#include <gtest/gtest.h>

#include "tensor/device.h"
#include "train/generate.h"
#include "train/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;

class OnACard : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_cards(&why).empty()) GTEST_SKIP() << "no NVIDIA card to run this on: " << why;
  }
  EngineOptions options_ = tiny_options(GetParam().config);
  const Corpus corpus_ = tiny_corpus(2000);
  Threads threads_{1};
};

TEST_P(OnACard, TheLossCurveIsTheCpusOver200Steps) {
  const Corpus corpus = tiny_corpus(200 * 32);
  const std::vector<StepBatch> steps = packed_steps(corpus, 200, 32, 32);
  for (const bool muon : {false, true}) {
    SCOPED_TRACE(muon ? "muon" : "adamw");
    if (muon) options_.muon = MuonOptions{};
    options_.device = nullptr;
    const Curve cpu = train_curve(options_, steps);
    options_.device = &cuda_device();
    const Curve card = train_curve(options_, steps);
    expect_same_curve(card, cpu, 1e-3);
    EXPECT_NEAR(card.losses.front(), cpu.losses.front(), 1e-5);
    EXPECT_NEAR(card.gradient_norms.front(), cpu.gradient_norms.front(), 1e-5 * cpu.gradient_norms.front());
  }
}

TEST_P(OnACard, SeveralMicroBatchesAreOneStep) {
  options_.device = &cuda_device();
  const Curve whole = train_curve(options_, packed_steps(corpus_, 4, 32, 32));
  const Curve divided = train_curve(options_, packed_steps(corpus_, 4, 32, 8));
  expect_same_curve(divided, whole, 1e-5);
}

TEST_P(OnACard, Bf16FollowsTheCpus) {
  options_.compute_type = DType::bf16;
  const std::vector<StepBatch> steps = packed_steps(corpus_, 20, 32, 16);
  options_.device = nullptr;
  const Curve cpu = train_curve(options_, steps);
  options_.device = &cuda_device();
  const Curve card = train_curve(options_, steps);
  expect_same_curve(card, cpu, 2e-2);
}

TEST_P(OnACard, TwoRunsHaveTheSameBits) {
  options_.device = &cuda_device();
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.compute_type = type;
    const std::vector<StepBatch> steps = packed_steps(corpus_, 6, 32, 8);
    expect_same_bits(train_curve(options_, steps), train_curve(options_, steps));
  }
}

TEST_P(OnACard, RecomputingActivationsChangesNothing) {
  options_.device = &cuda_device();
  const std::vector<StepBatch> steps = packed_steps(corpus_, 4, 32, 16);
  const Curve kept = train_curve(options_, steps);
  options_.checkpoint_every = 1;
  expect_same_bits(train_curve(options_, steps), kept);
}

TEST_P(OnACard, EvaluationAndGenerationAreTheCpus) {
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
  EvaluationResult cpu, card;
  const auto text = run(nullptr, cpu);
  EXPECT_EQ(run(&cuda_device(), card), text);
  EXPECT_NEAR(card.loss, cpu.loss, 1e-5 * cpu.loss);
  EXPECT_EQ(card.targets, cpu.targets);
}

TEST_P(OnACard, AStepThatIsNotFiniteOrAboveALimitChangesNothing) {
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

INSTANTIATE_TEST_SUITE_P(Shapes, OnACard, ::testing::ValuesIn(both_shapes()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace brisk
