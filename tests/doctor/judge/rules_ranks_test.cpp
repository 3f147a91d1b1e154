#include <gtest/gtest.h>

#include "doctor/judge/expect_finding.h"
#include "doctor/judge/healthy_readings.h"

namespace brisk {
namespace {

using test::finds;
using test::first_finding;
using test::healthy_readings;
using test::healthy_readings_on_gpu;

// A hundred seconds of four ranks.
Readings of_four_ranks(std::vector<double> communication) {
  Readings readings = healthy_readings();
  readings.stretch.sequences_per_step = 128;
  readings.history.rank_communication = std::move(communication);
  readings.history.rank_seconds = 100;
  return readings;
}

TEST(SeveralProcesses, AreFasterWhereTheyWereMeasured) {
  Readings readings = healthy_readings();
  EXPECT_FALSE(finds(readings, "several_processes")) << "nothing was measured";
  readings.process_curve = {{1, 10'000}, {2, 11'000}, {4, 10'500}};
  const Finding finding = first_finding(readings, "several_processes", 1 / (1 - 0.96 * (1 - 1 / 1.1)));
  EXPECT_EQ(finding.fix->processes, 2);
  EXPECT_NE(finding.fix->advice.find("brisk launch -n 2 train"), std::string::npos);
  EXPECT_EQ(finding.sameness, Sameness::same_maths);
  EXPECT_EQ(finding.evidence.size(), 3U);
  readings.process_curve = {{1, 10'000}, {2, 10'100}};
  EXPECT_FALSE(finds(readings, "several_processes")) << "a gain below 2 % is no finding";
  readings.process_curve = {{1, 10'000}, {2, 9'000}};
  EXPECT_FALSE(finds(readings, "several_processes"));
}

TEST(ExposedCommunication, IsWhatTheSlowestRankSpendsToo) {
  first_finding(of_four_ranks({25, 30, 28, 26}), "exposed_communication", 1 / 0.75);
  EXPECT_FALSE(finds(of_four_ranks({9, 30, 28, 26}), "exposed_communication")) << "the others wait for rank 0";
  EXPECT_FALSE(finds(of_four_ranks({5, 6, 5, 7}), "exposed_communication"));
  EXPECT_FALSE(finds(of_four_ranks({50}), "exposed_communication")) << "one process";
}

TEST(SlowRank, IsNamed) {
  const Finding finding = first_finding(of_four_ranks({40, 38, 5, 40}), "slow_rank", 1 / (1 - 0.35));
  EXPECT_NE(finding.cause.find("Rank 2 computes 58 % longer"), std::string::npos) << finding.cause;
  EXPECT_EQ(finding.evidence.front().name, "rank 2");
  EXPECT_FALSE(finds(of_four_ranks({6, 5, 4, 7}), "slow_rank"));
  Readings told = of_four_ranks({40, 38, 5, 40});
  told.history.rank_work = {58, 60, 90, 59};
  told.history.rank_hosts = {"a", "a", "b", "b"};
  const Finding of_work = first_finding(told, "slow_rank", 1 / (1 - 0.31));
  EXPECT_EQ(of_work.evidence.front().note, "of computing, on b");
  told.history.rank_work = {58, 60, 61, 59};
  EXPECT_FALSE(finds(told, "slow_rank")) << "what it does besides is not its speed";
}

TEST(SmallPart, IsAStepThatDoesNotFillTheRanks) {
  Readings readings = of_four_ranks({5, 5, 5, 5});
  EXPECT_FALSE(finds(readings, "small_part"));
  readings.stretch.sequences_per_step = 32;  // eight each: 12,000 tokens/s instead of 16,000
  const Finding finding = first_finding(readings, "small_part", 1 / (1 - 0.96 * 0.25));
  EXPECT_NE(finding.fix->advice.find("2 ranks"), std::string::npos) << finding.fix->advice;
  readings.batch_curve = {};
  EXPECT_FALSE(finds(readings, "small_part")) << "it divides evenly, and nothing is known of smaller micro-batches";
  readings.stretch.sequences_per_step = 6;  // two ranks have two, two have one
  first_finding(readings, "small_part", 1 / (1 - 0.96 * 0.25));
  readings.history.rank_communication = {};
  EXPECT_FALSE(finds(readings, "small_part"));
}

TEST(IdleGpus, AreUsedByAProcessEach) {
  Readings readings = healthy_readings_on_gpu();
  readings.machine.gpus = {"a GPU", "a GPU", "a GPU", "a GPU"};
  const Finding finding = first_finding(readings, "idle_gpu", 1);
  EXPECT_EQ(finding.fix->processes, 4);
  EXPECT_NE(finding.fix->advice.find("brisk launch -n 4 train"), std::string::npos);
}

}  // namespace
}  // namespace brisk
