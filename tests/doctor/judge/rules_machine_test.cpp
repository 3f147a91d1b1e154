#include <gtest/gtest.h>

#include "doctor/judge/expect_finding.h"
#include "doctor/judge/healthy_readings.h"

namespace brisk {
namespace {

using test::expect_fix;
using test::finds;
using test::first_finding;
using test::healthy_readings;
using test::healthy_readings_on_gpu;

TEST(TooFewThreads, LeaveCoresIdle) {
  Readings readings = healthy_readings();
  readings.job.training.threads = 1;
  readings.stretch.threads = 1;
  const Finding finding = first_finding(readings, "too_few_threads", 1 / (1 - 0.96 * 0.98 * (1 - 4.5 / 16)));
  expect_fix(finding, "training.threads", "\"auto\"");
  EXPECT_EQ(finding.sameness, Sameness::same_maths) << "gradients of norms and biases are summed by thread";
  EXPECT_EQ(finding.cause, "1 thread is computing on 4 cores, so 3 cores are idle.");
  readings.thread_curve = {};
  first_finding(readings, "too_few_threads", 1 / (1 - 0.96 * 0.98 * 0.75));
  readings.thread_curve = {{1, 4500}, {2, 4550}, {4, 4400}};
  EXPECT_FALSE(finds(readings, "too_few_threads")) << "more were measured, and are no faster";
  readings.stretch.threads = 4;
  EXPECT_FALSE(finds(readings, "too_few_threads"));
}

TEST(Oversubscribed, WaitForTheCoreWithOneMore) {
  Readings readings = healthy_readings();
  readings.job.training.threads = readings.stretch.threads = 6;
  readings.thread_curve = {};
  expect_fix(first_finding(readings, "oversubscribed", 1 / (1 - 0.96 * 0.98 * 0.25)), "training.threads", "\"auto\"");
  readings.thread_curve = {{4, 16'000}, {6, 8000}};
  first_finding(readings, "oversubscribed", 1 / (1 - 0.96 * 0.98 * 0.5));
  readings.stretch.threads = 4;
  EXPECT_FALSE(finds(readings, "oversubscribed"));
}

TEST(QuotaThrottled, IsStoppedByTheCgroup) {
  Readings readings = healthy_readings();
  readings.machine.quota_cores = 4;
  readings.stretch.throttled_seconds = 3;
  EXPECT_FALSE(first_finding(readings, "quota_throttled", 1 / 0.7).fix->is_setting()) << "the quota is not the job's";
  readings.machine.quota_cores = 2.5;
  expect_fix(first_finding(readings, "quota_throttled", 1), "training.threads", "2");
  readings.stretch.throttled_seconds = 0.1;
  EXPECT_FALSE(finds(readings, "quota_throttled"));
}

TEST(Swapping, IsTimeSpentWaitingForTheDisk) {
  Readings readings = healthy_readings();
  readings.stretch.swapped_bytes = 1'000'000'000;
  readings.stretch.major_faults = 1000;
  readings.stretch.disk_wait_seconds = 4;
  expect_fix(first_finding(readings, "swapping", 1 / (1 - 0.96 * 0.4)), "training.micro_batch_tokens", "1600");
  readings.stretch.major_faults = 5;
  EXPECT_FALSE(finds(readings, "swapping")) << "what lies there is not used";
}

TEST(IdleGpu, BesideATrainingOnTheCpu) {
  Readings readings = healthy_readings();
  readings.machine.gpus = {"a GPU"};
  readings.machine.no_gpu = "";
  readings.job.training.padding = "max_length";
  readings.stretch.rows = 320'000;
  expect_fix(first_finding(readings, "idle_gpu", 1), "device", "\"cuda\"");
  readings.machine.visible_devices = "";
  readings.stretch.rows = 160'000;
  EXPECT_NE(first_finding(readings, "idle_gpu", 1).cause.find("CUDA_VISIBLE_DEVICES"), std::string::npos);
  readings.machine.gpus = {};
  EXPECT_FALSE(finds(readings, "idle_gpu"));
}

TEST(IdleGpu, BesideTheOneThatTrains) {
  Readings readings = healthy_readings_on_gpu();
  readings.machine.gpus = {"a GPU", "a GPU"};
  EXPECT_FALSE(first_finding(readings, "idle_gpu", 1).fix->is_setting());
}

TEST(BusyMachine, TakesProcessorsThatTheTrainingWants) {
  Readings readings = healthy_readings();
  readings.stretch.other_seconds = 20;
  first_finding(readings, "busy_machine", 1 / (1 - 0.96 * 0.98 * 0.5));
  readings.stretch.other_seconds = 39;
  first_finding(readings, "busy_machine", 1 / (1 - 0.96 * 0.98 * 0.9));
  readings.machine.logical_processors = 8;
  EXPECT_FALSE(finds(readings, "busy_machine")) << "there is room for both";
  readings.machine.logical_processors = 4;
  readings.stretch.other_seconds = 3;
  EXPECT_FALSE(finds(readings, "busy_machine"));
}

TEST(BusyMachine, IsSeenByHowLongThreadsWaitWhereTheSystemCountsIt) {
  Readings readings = healthy_readings();
  readings.stretch.other_seconds = 39;  // of programs that give way
  readings.stretch.waiting_seconds = 0.01 * readings.stretch.seconds;
  EXPECT_FALSE(finds(readings, "busy_machine"));
  readings.stretch.waiting_seconds = 0.25 * static_cast<double>(readings.stretch.threads) * readings.stretch.seconds;
  first_finding(readings, "busy_machine", 1 / (1 - 0.96 * 0.98 * 0.25));
}

}  // namespace
}  // namespace brisk
