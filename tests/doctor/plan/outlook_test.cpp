#include "doctor/plan/outlook.h"

#include <gtest/gtest.h>

#include "doctor/plan/job_size.h"
#include "doctor/plan/made_up_sizes.h"

namespace brisk {
namespace {

using test::made_up_size;
using test::made_up_times;

constexpr int64_t kMemory = int64_t{4} << 30;

Job job_that_evaluates_after_epochs() {
  Job job = job_from_json_text(
      R"({"training": {"batch_size": 10, "num_epochs": 2, "eval_steps": "epoch", "save_steps": "epoch",
                                   "save_minutes": 0}, "data": {"train": ["a.txt"]}})",
      "job.json");
  resolve_defaults(job);
  return job;
}

TEST(Outlook, AnEpochIsStepsEvaluationsAndCheckpoints) {
  const JobSize size = made_up_size();
  const StepTimes times = made_up_times();
  const Outlook outlook = outlook_of(job_that_evaluates_after_epochs(), size, &times, kMemory);
  EXPECT_NEAR(outlook.step_seconds, 1.5, 1e-9);
  EXPECT_NEAR(outlook.tokens_per_second, 1000 / 1.5, 1e-6);
  EXPECT_NEAR(outlook.epoch_seconds, 10 * 1.5 + 500 * 3e-4 + 0.1, 1e-9);
  EXPECT_NEAR(outlook.run_seconds, 1 + 2 * outlook.epoch_seconds, 1e-9);
  EXPECT_TRUE(outlook.fits);
  EXPECT_FALSE(outlook_of(job_that_evaluates_after_epochs(), size, &times, int64_t{128} << 20).fits);
}

TEST(Outlook, WhatWasNotTimedIsUnknown) {
  const Outlook outlook = outlook_of(job_that_evaluates_after_epochs(), made_up_size(), nullptr, kMemory);
  EXPECT_LT(outlook.tokens_per_second, 0);
  EXPECT_LT(outlook.epoch_seconds, 0);
  EXPECT_GT(outlook.memory_bytes, 0);
}

TEST(Outlook, ATimeBoxIsTheTimeOfTheRun) {
  Job job = job_that_evaluates_after_epochs();
  JobSize size = made_up_size();
  size.total_steps = -1;
  size.box_seconds = 60;
  const StepTimes times = made_up_times();
  EXPECT_DOUBLE_EQ(outlook_of(job, size, &times, kMemory).run_seconds, 60);
}

TEST(WithMoreData, AnEpochHasMoreStepsAndTheRunToo) {
  const Job job = job_that_evaluates_after_epochs();
  const JobSize twice = with_more_data(job, made_up_size(), 2);
  EXPECT_EQ(twice.steps_per_epoch, 20);
  EXPECT_EQ(twice.total_steps, 40);
  EXPECT_DOUBLE_EQ(twice.validation_tokens, 1000);
  EXPECT_EQ(twice.memory.total(), made_up_size().memory.total());
}

TEST(OnRanks, EachComputesAPartAndUpdatesARange) {
  const Job job = job_that_evaluates_after_epochs();
  const JobSize size = made_up_size();
  JobSize part = size;
  part.sequences_per_step = 5;
  part.steps_per_epoch = 20;
  const StepTimes times = made_up_times();
  const Outlook one = outlook_of(job, size, &times, kMemory), two = on_ranks({.size = 2}, one, size, part, times);
  EXPECT_NEAR(two.step_seconds, 0.5 + 0.25, 1e-9);
  EXPECT_NEAR(two.part_seconds, 0.5 + 0.5, 1e-9);
  EXPECT_LT(two.exposed_seconds, 0);  // of a network that nobody knows
  EXPECT_NEAR(two.tokens_per_second, 1000 / 0.75, 1e-6);
  EXPECT_NEAR(two.epoch_seconds, one.epoch_seconds - 10 * 0.75, 1e-9);
  EXPECT_DOUBLE_EQ(two.network_bytes_per_step, 4 * 4e6);  // half of the gradients and half of the weights
}

TEST(OnRanks, WhatANetworkAddsIsInTheTime) {
  const Job job = job_that_evaluates_after_epochs();
  const JobSize size = made_up_size();
  const StepTimes times = made_up_times();
  const Outlook one = outlook_of(job, size, &times, kMemory);
  // 16 MB each way at half of 80 MB/s: 0.1 s for the gradients, 0.1 s for the weights.
  const Outlook two = on_ranks({.size = 2, .bytes_per_second = 80e6}, one, size, size, times);
  EXPECT_NEAR(two.exposed_seconds, 0.2, 1e-9);
  EXPECT_NEAR(two.step_seconds, 1.0 + 0.25 + 0.2, 1e-9);
}

TEST(FitsInto, WhatTheProgramTakesBesidesCounts) {
  JobSize::Memory memory{.weights = 1000 << 20};
  EXPECT_TRUE(fits_into(memory, int64_t{1200} << 20));
  EXPECT_FALSE(fits_into(memory, int64_t{1050} << 20));
}

}  // namespace
}  // namespace brisk
