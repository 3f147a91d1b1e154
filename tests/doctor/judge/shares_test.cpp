#include "doctor/judge/shares.h"

#include <gtest/gtest.h>

#include <vector>

namespace brisk {
namespace {

TEST(Curve, HasAKneeAndSpeedsBetweenItsPoints) {
  const std::vector<CurvePoint> curve = {{32, 16'000}, {8, 12'000}, {16, -1}};
  EXPECT_EQ(speed_at(curve, 20), 14'000);
  EXPECT_EQ(speed_at(curve, 1), 12'000);
  EXPECT_EQ(speed_at(curve, 64), 16'000);
  EXPECT_EQ(knee_of(curve)->x, 32);
  EXPECT_EQ(knee_of({}), nullptr);
}

}  // namespace
}  // namespace brisk
