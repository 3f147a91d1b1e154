// Time is a ledger: what is spent in a phase appears in that phase and nowhere else, and everything adds up.
#include "base/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "support/manual_clock.h"

namespace brisk {
namespace {

using test::ManualClock;

Ledger::Totals seconds_of(std::initializer_list<std::pair<Phase, double>> phases) {
  Ledger::Totals totals;
  for (const auto& [phase, seconds] : phases)
    totals.nanoseconds[static_cast<size_t>(phase)] = std::llround(1e9 * seconds);
  return totals;
}

class Ledgers : public ::testing::Test {
 protected:
  void expect_spent(const std::initializer_list<std::pair<Phase, double>>& phases) {
    EXPECT_EQ(ledger_.totals().nanoseconds, seconds_of(phases).nanoseconds);
  }

  ManualClock clock_;
  Ledger ledger_{Phase::other, clock_};
};

TEST_F(Ledgers, HaveANameForEachPhase) {
  std::vector<std::string_view> names;
  for (int p = 0; p < kPhases; ++p) names.push_back(phase_name(static_cast<Phase>(p)));
  for (const std::string_view name : names) {
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

TEST_F(Ledgers, ChargeTheTimeInAScopeToItsPhaseAlone) {
  for (int p = 0; p < kPhases; ++p) {
    Ledger ledger(p == 0 ? Phase::other : Phase::start_up, clock_);
    Ledger::Scope scope(ledger, static_cast<Phase>(p));
    clock_.advance(2);
    EXPECT_EQ(ledger.totals().nanoseconds, seconds_of({{static_cast<Phase>(p), 2}}).nanoseconds);
  }
}

TEST_F(Ledgers, TakeAnInnerScopeAwayFromTheOuterOne) {
  {
    Ledger::Scope outer(ledger_, Phase::checkpoint);
    clock_.advance(1);
    {
      Ledger::Scope inner(ledger_, Phase::logging);
      clock_.advance(2);
      Ledger::Scope again(ledger_, Phase::logging);
      clock_.advance(4);
    }
    clock_.advance(8);
  }
  clock_.advance(16);
  expect_spent({{Phase::checkpoint, 9}, {Phase::logging, 6}, {Phase::other, 16}});
}

TEST_F(Ledgers, ChargeEverythingToAPhaseThatIsHeld) {
  {
    Ledger::Hold hold(ledger_, Phase::evaluation);
    clock_.advance(1);
    {
      Ledger::Scope scope(ledger_, Phase::forward_linear);
      clock_.advance(2);
      Ledger::Hold again(ledger_, Phase::logging);
      clock_.advance(4);
    }
    Ledger::Scope scope(ledger_, Phase::copy);
    clock_.advance(8);
  }
  Ledger::Scope scope(ledger_, Phase::optimizer);
  clock_.advance(16);
  expect_spent({{Phase::evaluation, 15}, {Phase::optimizer, 16}});
}

TEST_F(Ledgers, SubtractAndAddTotalsByPhase) {
  const Ledger::Totals start = ledger_.totals();
  {
    Ledger::Scope scope(ledger_, Phase::data_wait);
    clock_.advance(1);
  }
  const Ledger::Totals middle = ledger_.totals();
  {
    Ledger::Scope scope(ledger_, Phase::copy);
    clock_.advance(2);
  }
  const Ledger::Totals end = ledger_.totals();
  EXPECT_EQ((middle - start).nanoseconds, seconds_of({{Phase::data_wait, 1}}).nanoseconds);
  EXPECT_EQ((end - middle).nanoseconds, seconds_of({{Phase::copy, 2}}).nanoseconds);
  Ledger::Totals sum = middle - start;
  sum += end - middle;
  EXPECT_EQ(sum.nanoseconds, (end - start).nanoseconds);
  EXPECT_EQ(sum.stamps, 4);
  EXPECT_EQ(sum.seconds(), 3);
}

TEST_F(Ledgers, SpreadTimeAsItWasMeasuredBefore) {
  clock_.advance(8);
  ledger_.spread(seconds_of({{Phase::forward_linear, 3}, {Phase::forward_attention, 1}}));
  expect_spent({{Phase::forward_linear, 6}, {Phase::forward_attention, 2}});
  EXPECT_TRUE(ledger_.totals().sampled);
}

TEST_F(Ledgers, ChargeTheCurrentPhaseWhereThereIsNothingToSpreadBy) {
  clock_.advance(2);
  ledger_.spread({});
  expect_spent({{Phase::other, 2}});
}

TEST_F(Ledgers, SpreadNothingWhileAPhaseIsHeld) {
  Ledger::Hold hold(ledger_, Phase::evaluation);
  clock_.advance(2);
  ledger_.spread(seconds_of({{Phase::forward_linear, 1}}));
  expect_spent({{Phase::evaluation, 2}});
}

TEST_F(Ledgers, TakeWhatTheHostDidWhileAGpuWasBusyForTheGpus) {
  ledger_.enter(Phase::evaluation);
  clock_.advance(2);
  ledger_.enter(Phase::other);
  const Ledger::Totals earlier = ledger_.totals();
  {
    Ledger::Scope scope(ledger_, Phase::logging);
    clock_.advance(4);
  }
  ledger_.hide_host(earlier, seconds_of({{Phase::loss, 3}, {Phase::optimizer, 1}}));
  expect_spent({{Phase::evaluation, 2}, {Phase::loss, 3}, {Phase::optimizer, 1}});
  EXPECT_TRUE(ledger_.totals().sampled);
}

TEST(Ledger, OfTheSystemsClockIsTheTimeBetweenItsFirstAndLastStamp) {
  const int64_t before = kSystemClock.nanoseconds();
  Ledger ledger;
  for (const Phase phase : {Phase::copy, Phase::loss, Phase::optimizer, Phase::other}) ledger.enter(phase);
  const double spent = ledger.totals().seconds();
  EXPECT_GE(spent, 0);
  EXPECT_LE(spent, kSystemClock.seconds_since(before));
}

}  // namespace
}  // namespace brisk
