#include "base/ledger.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace brisk {
namespace {

Ledger::Totals shares_of(int64_t linear, int64_t attention) {
  Ledger::Totals shares;
  shares.nanoseconds[static_cast<size_t>(Phase::forward_linear)] = linear;
  shares.nanoseconds[static_cast<size_t>(Phase::forward_attention)] = attention;
  return shares;
}

TEST(Ledger, SpreadsTimeAsItWasMeasuredBefore) {
  Ledger ledger;
  std::this_thread::sleep_for(std::chrono::milliseconds(8));
  ledger.spread(shares_of(3, 1));
  const Ledger::Totals totals = ledger.totals();
  EXPECT_GE(totals.seconds(Phase::forward_linear), 5.9e-3);
  EXPECT_NEAR(totals.seconds(Phase::forward_linear), 3 * totals.seconds(Phase::forward_attention), 1e-6);
  EXPECT_LT(totals.seconds(Phase::other), 1e-3);
}

TEST(Ledger, WithoutSharesTimeIsTheCurrentPhases) {
  Ledger ledger(Phase::logging);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ledger.spread({});
  EXPECT_GE(ledger.totals().seconds(Phase::logging), 2e-3);
}

TEST(Ledger, SpreadsNothingWhileAPhaseIsHeld) {
  Ledger ledger;
  {
    Ledger::Hold hold(ledger, Phase::evaluation);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ledger.spread(shares_of(1, 1));
  }
  EXPECT_GE(ledger.totals().seconds(Phase::evaluation), 2e-3);
  EXPECT_EQ(ledger.totals().seconds(Phase::forward_linear), 0);
}

TEST(Ledger, WhatTheHostDidWhileAGpuWasBusyIsTheGpus) {
  Ledger ledger(Phase::evaluation);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ledger.enter(Phase::other);
  const Ledger::Totals earlier = ledger.totals();
  {
    Ledger::Scope scope(ledger, Phase::logging);
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
  const double wall = ledger.totals().seconds();
  Ledger::Totals shares;
  shares.nanoseconds[static_cast<size_t>(Phase::loss)] = 3;
  shares.nanoseconds[static_cast<size_t>(Phase::optimizer)] = 1;
  ledger.hide_host(earlier, shares);
  const Ledger::Totals after = ledger.totals();
  EXPECT_NEAR(after.seconds(Phase::logging), earlier.seconds(Phase::logging), 1e-9);
  EXPECT_GE(after.seconds(Phase::loss), 0.003 * 0.9);
  EXPECT_NEAR(after.seconds(Phase::loss), 3 * after.seconds(Phase::optimizer), 1e-6);
  EXPECT_GE(after.seconds(Phase::evaluation), 0.002) << "the GPU did that itself";
  EXPECT_GE(after.seconds(), wall) << "no time is lost";
  EXPECT_LT(after.seconds(), wall + 0.5);
  EXPECT_TRUE(after.sampled);
}

}  // namespace
}  // namespace brisk
