#include <gtest/gtest.h>

#include "doctor/judge/expect_finding.h"
#include "doctor/judge/healthy_readings.h"

namespace brisk {
namespace {

using test::expect_fix;
using test::finds;
using test::first_finding;
using test::healthy_readings;
using test::kClassifier;
using test::spend;

TEST(Precision, ByTheRateOfLargeProducts) {
  Readings readings = healthy_readings();
  readings.machine.product_gflops["bf16"] = 300;
  const Finding finding = first_finding(readings, "precision", 1 / (1 - 0.96 * 0.78 * (1 - 1 / 3.0)));
  expect_fix(finding, "training.precision", "\"bf16\"");
  EXPECT_EQ(finding.cause,
            "The job multiplies in fp32; bf16 is 3.00x as fast on this machine (300 GFLOP/s against 100 GFLOP/s).");
  readings.machine.product_gflops["bf16"] = 102;
  EXPECT_FALSE(finds(readings, "precision"));
}

TEST(Precision, ByStepsOfTheModelWhereTheyWereTimed) {
  Readings readings = healthy_readings();
  readings.machine.product_gflops["bf16"] = 300;
  readings.precision_tokens_per_second = {{"fp32", 16'000}, {"bf16", 20'000}};
  first_finding(readings, "precision", 1 / (1 - 0.96 * 0.2));
  readings.precision_tokens_per_second["bf16"] = 15'000;
  EXPECT_FALSE(finds(readings, "precision")) << "products are faster, this model is not";
}

TEST(Precision, OfAProcessorWithoutItsInstructionsIsSlower) {
  Readings readings = healthy_readings();
  readings.model.precision = "bf16";
  readings.machine.product_gflops["bf16"] = 40;
  expect_fix(first_finding(readings, "precision", 1 / (1 - 0.96 * 0.78 * (1 - 40 / 100.0))), "training.precision",
             "\"fp32\"");
}

TEST(HeadCost, ByTheVocabularyThatIsUsed) {
  Readings readings = healthy_readings();
  spend(readings, Phase::loss, 4.0);
  readings.data.distinct_tokens = 2000;
  expect_fix(first_finding(readings, "head_cost", 1 / (1 - 0.96 * 0.4 * 0.75)), "model.vocab_size", "2048");
  readings.job.data.tokenizer = "tokenizer.json";
  EXPECT_FALSE(judge(readings).at(0).fix->is_setting()) << "its size is not the job's to choose";
  spend(readings, Phase::loss, 3.0);
  EXPECT_FALSE(finds(readings, "head_cost"));
}

TEST(AttentionLength, IsWhatShorteningSaves) {
  Readings readings = healthy_readings();
  spend(readings, Phase::forward_attention, 1.2);
  spend(readings, Phase::backward_attention, 2.4);
  const Finding finding = first_finding(readings, "attention_length", 1 / (1 - 0.96 * 0.36 * (1 - 64 / 100.0)));
  expect_fix(finding, "training.max_length", "64");
  EXPECT_EQ(finding.cause, "Attention is 35 % of the time: half the length would gain 1.14x per token.");
  spend(readings, Phase::backward_attention, 1.3);
  EXPECT_FALSE(finds(readings, "attention_length"));
}

TEST(ModelTooLarge, ForItsData) {
  Readings readings = healthy_readings();
  readings.model.parameters = 30'000'000;
  const Finding finding = first_finding(readings, "model_too_large", 1 / (1 - 0.96 * 0.74 / 2));
  expect_fix(finding, "model.num_layers", "2");
  EXPECT_TRUE(finding.is_quality);
  readings.job.model.from = "runs/base";
  EXPECT_FALSE(finds(readings, "model_too_large")) << "it learned from more";
  readings.job.model.from = "";
  readings.model.parameters = 19'000'000;
  EXPECT_FALSE(finds(readings, "model_too_large"));
}

TEST(ModelTooLarge, ForTheMemory) {
  Readings readings = healthy_readings();
  readings.stretch.planned_memory_bytes = 80'000'000'000;
  EXPECT_FALSE(first_finding(readings, "model_too_large", 1).fix->is_setting());
}

TEST(FrozenRecomputed, IsWhatTheirForwardPassTakesInAllEpochsButOne) {
  Readings readings = healthy_readings(kClassifier);
  readings.job.training.freeze = 2;
  EXPECT_FALSE(finds(readings, "frozen_recomputed")) << "they are kept";
  readings.job.training.cache_frozen = false;
  expect_fix(first_finding(readings, "frozen_recomputed", 1 / (1 - 0.96 * (0.005 + 0.25 / 2) / 2)),
             "training.cache_frozen", "true");
  readings.course.epochs = 1;
  EXPECT_FALSE(finds(readings, "frozen_recomputed"));
}

TEST(FrozenRecomputed, WhereFrozenDropoutForbidsKeeping) {
  Readings readings = healthy_readings(kClassifier);
  readings.job.training.freeze = 2;
  readings.job.training.frozen_dropout = true;
  const Finding finding = first_finding(readings, "frozen_recomputed", 1 / (1 - 0.96 * (0.005 + 0.25 / 2) / 2));
  expect_fix(finding, "training.frozen_dropout", "false");
  EXPECT_EQ(finding.sameness, Sameness::changes_maths);
}

TEST(OptimizerCost, IsSharedByMoreSequences) {
  Readings readings = healthy_readings();
  spend(readings, Phase::optimizer, 2.0);
  expect_fix(first_finding(readings, "optimizer_cost", 1 / (1 - 0.96 * 0.21 * 7 / 8)), "training.batch_size", "256");
  spend(readings, Phase::optimizer, 1.3);
  EXPECT_FALSE(finds(readings, "optimizer_cost"));
}

TEST(DuplicateForward, GainsItsOwnTimeAndNoMore) {
  Readings readings = healthy_readings();
  readings.stretch.forwards_per_step = 2;
  first_finding(readings, "duplicate_forward", 1 / (1 - 0.96 * 0.255 / 2));
  readings.job.training.gradient_checkpointing = 1;
  EXPECT_FALSE(finds(readings, "duplicate_forward")) << "asked for";
}

}  // namespace
}  // namespace brisk
