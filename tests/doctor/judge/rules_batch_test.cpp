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
using test::Pairs;

TEST(Padding, ShrinksWhatGrowsWithTheRowsAndAttentionByTheSquare) {
  Readings readings = healthy_readings();
  readings.job.training.padding = "max_length";
  readings.stretch.rows = 320'000;  // 200 a sequence
  // Rows: 8.5 of 10 s, half of it needed; attention: 0.8 of 10 s, (100 / 200)^2 of it needed.
  const Finding finding = first_finding(readings, "padding", 1 / (1 - 0.96 * (0.85 * 0.5 + 0.08 * 0.75)));
  expect_fix(finding, "training.padding", "\"none\"");
  EXPECT_EQ(finding.sameness, Sameness::same_maths);
  EXPECT_EQ(finding.evidence[0].value, "50 %");
  readings.stretch.rows = 161'000;
  EXPECT_FALSE(finds(readings, "padding"));
}

TEST(Padding, OfAnEncoderDoesNotReachItsHeadAndIsNotAttendedTo) {
  Readings readings = healthy_readings(kClassifier);
  readings.job.training.padding = "longest";
  readings.stretch.rows = 320'000;
  first_finding(readings, "padding", 1 / (1 - 0.96 * (0.67 * 0.5 + 0.08 * 0.5)));
}

Readings steps_of(int64_t sequences) {
  Readings readings = healthy_readings();
  readings.job.training.batch_size = sequences;
  readings.stretch.sequences_per_step = static_cast<double>(sequences);
  readings.stretch.sequences = sequences * readings.stretch.steps;
  readings.stretch.tokens = readings.stretch.rows = 100 * static_cast<double>(readings.stretch.sequences);
  readings.data.tokens = 24 * readings.stretch.tokens;  // an epoch takes as long as ever
  readings.model.parameters = 1'000'000;
  return readings;
}

TEST(BatchSize, TooSmallGrowsToTheKneeWithTheRates) {
  const Finding finding = first_finding(steps_of(8), "batch_size", 1 / (1 - 0.96 * (1 - 12.0 / 16)));
  expect_fix(finding, "training.batch_size", "32");
  EXPECT_EQ(finding.fix->also, (Pairs{{"training.learning_rate", "0.008"}, {"training.muon_learning_rate", "0.02"}}));
  EXPECT_NE(finding.fix->rule.find("square root"), std::string::npos);
  EXPECT_EQ(finding.sameness, Sameness::changes_maths);
  EXPECT_FALSE(finds(steps_of(16), "batch_size")) << "93 % of the best";
  EXPECT_EQ(finding.fix->also.size(), 2U) << "4096 rows hold 32 sequences";
  Readings divided = steps_of(8);
  divided.job.training.micro_batch_tokens = 800;
  EXPECT_EQ(judge(divided).at(0).fix->also.at(2),
            (std::pair<std::string, std::string>{"training.micro_batch_tokens", "\"auto\""}));
}

TEST(BatchSize, OfAMicroBatchGrowsWithoutChangingTheMaths) {
  Readings readings = healthy_readings();
  readings.stretch.micro_batches = 200;  // of 8
  readings.job.training.micro_batch_tokens = 800;
  const Finding finding = first_finding(readings, "batch_size", 1 / (1 - 0.96 * 0.93 * (1 - 12.0 / 16)));
  expect_fix(finding, "training.micro_batch_tokens", "\"auto\"");
  EXPECT_EQ(finding.sameness, Sameness::same_maths);
  readings.job.training.micro_batch_tokens = 4000;
  EXPECT_FALSE(finds(readings, "batch_size")) << "there is room, and something else divides the step";
  readings.job.training.micro_batch_tokens = 0;  // what brisk chose is too small
  expect_fix(judge(readings).at(0), "training.micro_batch_tokens", "4000");
}

TEST(BatchSize, TooLargeIsNearlyAllOfTheMemoryForNoSpeed) {
  Readings readings = steps_of(64);
  readings.stretch.peak_memory_bytes = 56'000'000'000;
  expect_fix(first_finding(readings, "batch_size", 1), "training.micro_batch_tokens", "4000");
  readings.stretch.peak_memory_bytes = 30'000'000'000;
  EXPECT_FALSE(finds(readings, "batch_size"));
}

TEST(Accumulation, OfSmallMicroBatchesIsNoWayToBeFast) {
  Readings readings = healthy_readings();
  readings.stretch.micro_batches = 200;
  readings.job.training.batch_size = 8;
  readings.job.training.gradient_accumulation_steps = 4;
  readings.job.training.micro_batch_tokens = 800;
  const Finding finding = first_finding(readings, "accumulation", 1 / (1 - 0.96 * 0.93 * (1 - 12.0 / 16)));
  expect_fix(finding, "training.micro_batch_tokens", "\"auto\"");
  EXPECT_FALSE(finds(readings, "batch_size")) << "one name for one thing";
  readings.stretch.micro_batches = 50;
  EXPECT_FALSE(finds(readings, "accumulation"));
}

TEST(LongOutliers, LoseTheirEndWhereTextsAreCut) {
  Readings readings = healthy_readings(kClassifier);
  readings.job.training.max_length = 1024;
  readings.data.longest = 1000;
  readings.data.lengths = {{72, 128, 38'000}, {1000, 1000, 400}};
  const double tokens = (3.8e6 + 400 * 128.0) / 4.2e6, attention = (3.8e8 + 400 * 128.0 * 128) / 7.8e8;
  const Finding finding =
      first_finding(readings, "long_outliers", 1 / (1 - 0.96 * (0.85 * (1 - tokens) + 0.08 * (1 - attention))));
  expect_fix(finding, "training.max_length", "128");
  readings.data.longest = 300;
  EXPECT_FALSE(finds(readings, "long_outliers"));
}

TEST(LongOutliers, OfALanguageModelOnlySaveAttention) {
  Readings readings = healthy_readings();
  readings.job.training.max_length = 1024;
  readings.data.longest = 1000;
  readings.data.lengths = {{72, 128, 38'000}, {1000, 1000, 400}};
  first_finding(readings, "long_outliers", 1 / (1 - 0.96 * 0.08 * (1 - (3.8e8 + 400 * 1000.0 * 128) / 7.8e8)));
}

TEST(ActivationCheckpointing, IsNotNeededWhereAllFits) {
  Readings readings = healthy_readings();
  readings.job.training.gradient_checkpointing = 1;
  readings.stretch.forwards_per_step = readings.vital_signs.forwards_per_step = 2;
  expect_fix(first_finding(readings, "activation_checkpointing", 1 / (1 - 0.96 * 0.255 / 2)),
             "training.gradient_checkpointing", "0");
  readings.machine.memory_available_bytes = 100'000'000;  // the activations take at most 236 MB
  EXPECT_FALSE(finds(readings, "activation_checkpointing"));
  readings.machine.memory_available_bytes = -1;
  readings.machine.memory_total_bytes = 600'000'000;
  EXPECT_FALSE(finds(readings, "activation_checkpointing"));
}

}  // namespace
}  // namespace brisk
