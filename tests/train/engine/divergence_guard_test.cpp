#include "train/engine/divergence_guard.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "checkpoint/checkpoint_state.h"
#include "support/scratch_folder.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Guard : public ::testing::Test {
 protected:
  // A step as the engine would make it: not applied above the limits.
  DivergenceGuard::Verdict step(double loss, double norm) {
    const UpdateLimits limits = guard.limits();
    StepResult result;
    result.loss_sum = 100 * loss;
    result.weight_sum = 100;
    result.gradient_norm = norm;
    result.updated = result.finite() && norm <= limits.gradient_norm && loss <= limits.loss;
    return guard.observe(++steps, result);
  }

  // A healthy run: the loss falls from 9 to about 4 and wavers, norms waver by a factor of 3.
  void learn(int count) {
    for (int i = 0; i < count; ++i) {
      const double noise = random_uniform(7, static_cast<uint64_t>(steps));
      const double loss = 4 + 5 * std::exp(-0.02 * static_cast<double>(steps)) + 0.6 * (noise - 0.5);
      const DivergenceGuard::Verdict verdict = step(loss, 0.5 * std::pow(3.0, 2 * noise - 1));
      ASSERT_FALSE(verdict.skipped) << steps << ": " << verdict.reason;
      ASSERT_FALSE(verdict.diverged) << steps << ": " << verdict.reason;
    }
  }

  TrainingOptions training;
  GuardState state;
  DivergenceGuard guard{training, state};
  int64_t steps = 0;
};

TEST_F(Guard, LeavesAHealthyRunAlone) {
  learn(2000);
  EXPECT_EQ(state.skipped, 0);
  EXPECT_TRUE(guard.healthy());
}

TEST_F(Guard, SkipsWhatIsNotFiniteFromTheFirstStep) {
  EXPECT_TRUE(step(kNan, 1).skipped);
  EXPECT_TRUE(step(9, INFINITY).skipped);
  EXPECT_FALSE(step(9, 1).skipped);
  EXPECT_EQ(state.skipped, 2);
}

TEST_F(Guard, SkipsAGradientFarAboveTheUsualAndSaysByHowMuch) {
  learn(200);
  EXPECT_FALSE(step(4.2, 4).skipped);
  const DivergenceGuard::Verdict verdict = step(4.2, 50);
  EXPECT_TRUE(verdict.skipped);
  EXPECT_FALSE(verdict.diverged);
  EXPECT_NE(verdict.reason.find("gradient's norm, 50"), std::string::npos) << verdict.reason;
  EXPECT_FALSE(guard.healthy());
  learn(40);
  EXPECT_TRUE(guard.healthy());
  EXPECT_EQ(state.skipped, 1);
}

TEST_F(Guard, SkipsAJumpOfTheLoss) {
  learn(200);
  EXPECT_FALSE(step(5.5, 0.5).skipped);
  const DivergenceGuard::Verdict verdict = step(9, 0.5);
  EXPECT_TRUE(verdict.skipped);
  EXPECT_FALSE(step(9, 0.5).skipped) << "the second one like it is not";
  EXPECT_NE(verdict.reason.find("loss jumped to 9"), std::string::npos) << verdict.reason;
}

TEST_F(Guard, LearnsTextsThatDifferWidely) {
  // Every fourth batch is in another language: one jump at the most, for the rest are like it.
  learn(200);
  for (int i = 0; i < 500; ++i) {
    const bool other = i % 4 == 0;
    const DivergenceGuard::Verdict verdict = step(4 + (other ? 4 : 0), other ? 2 : 0.5);
    EXPECT_FALSE(verdict.diverged) << i << ": " << verdict.reason;
  }
  EXPECT_LE(state.skipped, 1);
}

TEST_F(Guard, SeesARunThatGetsWorseFromTheBeginning) {
  int64_t diverged_at = 0;
  for (int i = 1; i <= 100 && diverged_at == 0; ++i) diverged_at = step(9 + 0.1 * i, 1).diverged ? i : 0;
  EXPECT_GT(diverged_at, 30);
  EXPECT_LT(diverged_at, 64);
  EXPECT_FALSE(guard.healthy());
}

TEST_F(Guard, CallsRepeatedSkipsADivergence) {
  learn(100);
  for (int i = 0; i < 7; ++i) ASSERT_FALSE(step(kNan, kNan).diverged) << i;
  const DivergenceGuard::Verdict verdict = step(kNan, kNan);
  EXPECT_TRUE(verdict.diverged);
  EXPECT_NE(verdict.reason.find("8 of the last 32"), std::string::npos) << verdict.reason;
}

TEST_F(Guard, ForgivesSkipsThatLieFarApart) {
  learn(100);
  for (int i = 0; i < 20; ++i) {
    ASSERT_FALSE(step(kNan, kNan).diverged) << i;
    learn(10);
  }
  EXPECT_EQ(state.skipped, 20);
}

TEST_F(Guard, SeesALossThatCreepsAwayWithoutAnyOutlier) {
  learn(400);
  bool diverged = false;
  double loss = 4;
  for (int i = 0; i < 1000 && !diverged; ++i, loss += 0.01) diverged = step(loss, 0.5).diverged;
  EXPECT_TRUE(diverged);
  EXPECT_GT(loss, 6);  // half of what was learned, 9 to 4, and the delay of a median
  EXPECT_LT(loss, 7.5);
}

TEST_F(Guard, IsSilentWhereItIsOff) {
  training.divergence_guard = false;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(step(i % 2 == 0 ? kNan : 50.0 * i, 100.0 * i).diverged);
  EXPECT_EQ(state, GuardState());
  EXPECT_EQ(guard.limits().gradient_norm, INFINITY);
}

TEST_F(Guard, StateComesBackFromACheckpointToTheBit) {
  learn(100);
  step(4, 1000);
  test::ScratchFolder folder;
  CheckpointState saved;
  saved.guard = state;
  saved.guard.rate_factor = 0.1 + 0.2;
  saved.elapsed_seconds = 1.0 / 3;
  saved.progress = 2.0 / 3;
  test::put_contents(folder.path() + "/state.json", checkpoint_state_to_json_text(saved));
  const CheckpointState read = read_checkpoint_state(folder.path());
  EXPECT_EQ(read.guard, saved.guard);
  EXPECT_EQ(read.elapsed_seconds, saved.elapsed_seconds);
  EXPECT_EQ(read.progress, saved.progress);
}

TEST_F(Guard, GoingBackHalvesTheRateAndKeepsTheCounts) {
  GuardState now, saved;
  now.skipped = 9;
  now.rollbacks = 1;
  now.rate_factor = 0.5;
  saved.lowest_loss = 3;
  saved.recent_skips = {5};
  const GuardState after = DivergenceGuard::after_rollback(saved, now);
  EXPECT_EQ(after.rate_factor, 0.25);
  EXPECT_EQ(after.rollbacks, 2);
  EXPECT_EQ(after.skipped, 9);
  EXPECT_EQ(after.lowest_loss, 3);
  EXPECT_TRUE(after.recent_skips.empty());
}

TEST(UpdateLimits, AStepAboveThemChangesNothing) {
  const testing::Threads threads(1);
  const testing::Corpus corpus = testing::tiny_corpus();
  Engine engine(testing::tiny_options(testing::gpt_shape()));
  engine.initialise(5);
  const auto steps = testing::packed_steps(corpus, 2);
  Ledger ledger;
  EXPECT_TRUE(engine.train_step(steps[0], 1, 1e-2, ledger).updated);
  const auto all = [&] {
    std::vector<float> values;
    for (const Tensor& flat : {engine.parameters().flat_master(), engine.parameters().flat_first_moment(),
                               engine.parameters().flat_second_moment()}) {
      const std::vector<float> part = testing::values_of(engine.parameters().device(), flat);
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  };
  const std::vector<float> before = all();
  const StepResult large = engine.train_step(steps[1], 2, 1e-2, ledger, {.gradient_norm = 1e-9});
  EXPECT_FALSE(large.updated);
  EXPECT_TRUE(large.finite());
  EXPECT_FALSE(engine.train_step(steps[1], 2, 1e-2, ledger, {.loss = 0.01}).updated);
  EXPECT_EQ(all(), before);
  EXPECT_TRUE(engine.train_step(steps[1], 2, 1e-2, ledger, {.gradient_norm = 1e9, .loss = 100}).updated);
  EXPECT_NE(all(), before);
}

}  // namespace
}  // namespace brisk
