#include "doctor/ladder/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace brisk {
namespace {

TEST(MedianRatio, HasTheIntervalOfTheOrderStatistics) {
  const Ratio six = median_ratio({1.3, 1.1, 1.2, 1.5, 1.4, 1.6});
  EXPECT_DOUBLE_EQ(six.median, 1.35);
  EXPECT_DOUBLE_EQ(six.low, 1.1);
  EXPECT_DOUBLE_EQ(six.high, 1.6);
  EXPECT_NEAR(six.confidence, 1 - 2.0 / 64, 1e-12);  // all six above or below: one in 64 each
  // With nine the outermost may be left out: 1 - 2 (1 + 9) / 512.
  const Ratio nine = median_ratio({9, 8, 7, 6, 5, 4, 3, 2, 1});
  EXPECT_DOUBLE_EQ(nine.median, 5);
  EXPECT_DOUBLE_EQ(nine.low, 2);
  EXPECT_DOUBLE_EQ(nine.high, 8);
  EXPECT_NEAR(nine.confidence, 1 - 20.0 / 512, 1e-12);
}

TEST(MedianRatio, OfFewSaysHowLittleItKnows) {
  const Ratio three = median_ratio({1.0, 2.0, 3.0});
  EXPECT_DOUBLE_EQ(three.low, 1);
  EXPECT_DOUBLE_EQ(three.high, 3);
  EXPECT_NEAR(three.confidence, 0.75, 1e-12);
  EXPECT_EQ(median_ratio({}).confidence, 0);
}

TEST(StandardDeviation, IsThatOfASample) {
  EXPECT_DOUBLE_EQ(standard_deviation({1, 3}), std::sqrt(2.0));
  EXPECT_EQ(standard_deviation({1}), 0);
}

}  // namespace
}  // namespace brisk
