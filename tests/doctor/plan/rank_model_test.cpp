#include "doctor/plan/rank_model.h"

#include <gtest/gtest.h>

#include "doctor/plan/made_up_sizes.h"

namespace brisk {
namespace {

constexpr RankWork kWork{.compute_seconds = 0.9, .update_seconds = 0.4, .gradient_bytes = 1e9, .weight_bytes = 1.5e9};

RankNetwork measured_network() {
  return {.size = 4, .gather_seconds = 1e-3, .sum = {{1e6, 0.01}, {1e9, 0.3}}, .share = {{1e6, 0.01}, {1e9, 0.2}}};
}

TEST(RankModel, OneRankHasNothingToSend) {
  const RankStep step = step_on_ranks(kWork, {.size = 1, .bytes_per_second = 1e9});
  EXPECT_DOUBLE_EQ(step.exposed(), 0);
  EXPECT_DOUBLE_EQ(step.seconds(), 0.9 + 0.4);
}

TEST(RankModel, AStepIsComputingCommunicationAndAShareOfTheUpdate) {
  const RankStep step = step_on_ranks(kWork, measured_network());
  EXPECT_DOUBLE_EQ(step.update, 0.1);
  EXPECT_DOUBLE_EQ(step.sum, 0.3);
  EXPECT_DOUBLE_EQ(step.weights, 0.2 * 1.5);  // beyond what was measured: in proportion
  EXPECT_DOUBLE_EQ(step.decisions, 5e-3);
  EXPECT_DOUBLE_EQ(step.seconds(), 0.9 + 0.1 + 0.3 + 0.3 + 5e-3);
}

TEST(RankModel, WhatIsHiddenIsAtMostWhatHidesIt) {
  RankNetwork network = measured_network();
  network.sum_overlap = 0.5;
  EXPECT_DOUBLE_EQ(step_on_ranks(kWork, network).hidden, 0.15);
  RankWork short_pass = kWork;
  short_pass.compute_seconds = 0.03;
  EXPECT_DOUBLE_EQ(step_on_ranks(short_pass, network).hidden, 0.02);  // the backward pass
  network.sum_overlap = 0;
  network.share_overlap = 1;
  EXPECT_DOUBLE_EQ(step_on_ranks(short_pass, network).hidden, 0.01);  // the forward pass
}

TEST(RankModel, MeasuredTransfersAreJoinedByStraightLines) {
  const RankNetwork network = measured_network();
  EXPECT_DOUBLE_EQ(transfer_seconds(1e3, network.sum, network), 0.01);
  EXPECT_NEAR(transfer_seconds(0.5 * (1e6 + 1e9), network.sum, network), 0.155, 1e-12);
  EXPECT_DOUBLE_EQ(transfer_seconds(2e9, network.sum, network), 0.6);
  EXPECT_DOUBLE_EQ(transfer_seconds(0, network.sum, network), 0);
}

TEST(RankModel, ADescribedNetworkHasLatencyAndBandwidth) {
  const RankNetwork network = made_up_network(8, 80, 1e-4);
  EXPECT_DOUBLE_EQ(network.bytes_per_second, 1e10);
  EXPECT_NEAR(transfer_seconds(8e9, {}, network), 7e-4 + 0.7, 1e-12);
  EXPECT_NEAR(step_on_ranks(kWork, network).decisions, 5 * 3e-4, 1e-12);  // as deep as a tree of eight
}

TEST(RankModel, SixteenBitCopiesOfWeightsAreSentToo) {
  const JobSize size = test::made_up_size();
  StepTimes times = test::made_up_times();
  EXPECT_DOUBLE_EQ(work_of_rank(size, times).weight_bytes, 16e6);
  EXPECT_NEAR(work_of_rank(size, times).compute_seconds, 1.0, 1e-12);
  times.precision = "bf16";
  const RankWork work = work_of_rank(size, times);
  EXPECT_DOUBLE_EQ(work.weight_bytes, 24e6);
  EXPECT_DOUBLE_EQ(work.gradient_bytes, 16e6);
  EXPECT_DOUBLE_EQ(bytes_sent(work, 4), 0.75 * 40e6);
}

}  // namespace
}  // namespace brisk
