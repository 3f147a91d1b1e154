#include <gtest/gtest.h>

#include "doctor/judge/expect_finding.h"
#include "doctor/judge/healthy_readings.h"

namespace brisk {
namespace {

using test::expect_fix;
using test::finds;
using test::first_finding;
using test::healthy_readings;
using test::spend;

TEST(DataLoading, GetsAsManyThreadsAsKeepUp) {
  Readings readings = healthy_readings();
  spend(readings, Phase::data_wait, 3.0);
  const Finding finding = first_finding(readings, "data_loading", 1 / (1 - 0.96 * 0.3));
  expect_fix(finding, "training.num_workers", "2");
  EXPECT_EQ(finding.sameness, Sameness::same_bits);
  readings.job.training.num_workers = 4;  // on four cores
  readings.data.file_system = "nfs";
  EXPECT_NE(first_finding(readings, "data_loading", 1 / (1 - 0.96 * 0.3)).fix->advice.find("nfs"), std::string::npos);
  spend(readings, Phase::data_wait, 0.3);
  EXPECT_FALSE(finds(readings, "data_loading"));
}

TEST(DataLoading, OnTheTrainingThreadOverlapsAsFarAsStepsAreLong) {
  Readings readings = healthy_readings();
  readings.job.training.num_workers = 0;
  readings.machine.cores = readings.stretch.threads = 1;
  readings.machine.logical_processors = 1;
  readings.thread_curve = {};
  spend(readings, Phase::forward_linear, 0.5);
  spend(readings, Phase::data_wait, 6.0);  // 0.6 of loading beside 0.4 of computing, on the one core there is
  expect_fix(first_finding(readings, "data_loading", 1 / (1 - 0.96 * 0.4)), "training.num_workers", "1");
}

TEST(EvaluationCost, IsWhatTheDefaultCadenceSaves) {
  Readings readings = healthy_readings();
  readings.job.training.eval_steps = 12;
  readings.course.evaluations_per_epoch = 100;
  // 180 s of 421 s, of which 9 s stay.
  const Finding finding = first_finding(readings, "evaluation_cost", 421.0 / (421 - 171));
  expect_fix(finding, "training.eval_steps", "\"auto\"");
  EXPECT_EQ(finding.sameness, Sameness::same_bits);
  readings.course.evaluations_per_epoch = 6;
  EXPECT_FALSE(finds(readings, "evaluation_cost"));
}

TEST(EvaluationCost, LeavesOneAnEpochToEarlyStopping) {
  Readings readings = healthy_readings();
  readings.job.training.eval_steps = 12;
  readings.job.training.early_stopping_patience = 3;
  readings.course.evaluations_per_epoch = 100;
  EXPECT_EQ(first_finding(readings, "evaluation_cost", 421.0 / (421 - 99 * 1.8)).sameness, Sameness::changes_maths);
}

TEST(LoggingCost, IsWhatRarerLinesSave) {
  Readings readings = healthy_readings();
  readings.job.training.logging_steps = 1;
  readings.course.logging_seconds = 0.02;
  readings.course.loggings_per_epoch = 1200;
  expect_fix(first_finding(readings, "logging_cost", 273.5 / (273.5 - 0.9 * 24)), "training.logging_steps", "\"auto\"");
  readings.job.training.logging_steps = 10;
  readings.job.training.histogram_steps = 10;
  expect_fix(first_finding(readings, "logging_cost", 273.5 / (273.5 - 24)), "training.histogram_steps", "0");
  readings.course.logging_seconds = 0.003;
  EXPECT_FALSE(finds(readings, "logging_cost"));
}

TEST(SavingCost, IsWhatACheckpointEveryFiveMinutesSaves) {
  Readings readings = healthy_readings();
  readings.job.training.save_steps = 10;
  readings.course.saves_per_epoch = 120;
  // 60 s of 309.5 s, of which 240 s / 5 min of half a second stay.
  expect_fix(first_finding(readings, "saving_cost", 309.5 / (309.5 - 59.6)), "training.save_steps", "\"auto\"");
  readings.course.saves_per_epoch = 8;
  EXPECT_FALSE(finds(readings, "saving_cost"));
}

TEST(SamplingCost, IsWhatSamplesTake) {
  Readings readings = healthy_readings();
  readings.job.training.sample_tokens = 256;
  readings.course.sample_seconds = 4;
  readings.course.samples_per_epoch = 5;
  expect_fix(first_finding(readings, "sampling_cost", 270.0 / 250), "training.sample_tokens", "\"auto\"");
  readings.job.training.sample_prompts = {"Once"};
  first_finding(readings, "sampling_cost", 270.0 / (270 - 15));  // a quarter stays
  readings.course.sample_seconds = 1;
  EXPECT_FALSE(finds(readings, "sampling_cost"));
}

}  // namespace
}  // namespace brisk
