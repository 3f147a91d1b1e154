#include "ops/optimizer/stochastic_rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace brisk {
namespace {

TEST(StochasticRounding, IsRightInTheMean) {
  const uint64_t key = rounding_key(random_key({1, 2}));
  for (const float value : {1.0f + 1.0f / 512, -0.3f, 1e-20f, 12345.678f}) {
    double sum = 0;
    constexpr int64_t kDraws = 200000;
    for (int64_t i = 0; i < kDraws; ++i) sum += to_float(to_bf16_stochastic(value, rounding_bits(key, i)));
    // A step of bf16 is at most 2^-7 of the value; the mean of so many draws is off by about a thousandth of it.
    EXPECT_NEAR(sum / kDraws / value, 1, 5e-5) << value;
  }
}

TEST(StochasticRounding, LeavesWhatBf16HasAndWhatIsNotFinite) {
  for (const uint32_t random : {0u, 1u, 0x8000u, 0xFFFFu, 0xFFFFFFFFu}) {
    for (const float value : {0.0f, 1.0f, -2.5f, 1.0078125f}) {
      EXPECT_EQ(to_float(to_bf16_stochastic(value, random)), value);
    }
    EXPECT_TRUE(std::isnan(to_float(to_bf16_stochastic(std::nanf(""), random))));
    EXPECT_EQ(to_float(to_bf16_stochastic(-std::numeric_limits<float>::infinity(), random)),
              -std::numeric_limits<float>::infinity());
  }
}

TEST(StochasticRounding, TakesOneOfTheTwoNeighbours) {
  const float value = 1.0f + 1.0f / 300;
  EXPECT_EQ(to_float(to_bf16_stochastic(value, 0)), 1.0f);
  EXPECT_EQ(to_float(to_bf16_stochastic(value, 0xFFFF)), 1.0078125f);
}

TEST(StochasticRounding, DrawsOtherwiseForEachElementAndStep) {
  const uint64_t key = rounding_key(random_key({1, 2})), next = rounding_key(random_key({1, 3}));
  EXPECT_NE(key, next);
  EXPECT_NE(rounding_bits(key, 5), rounding_bits(key, 6));
  EXPECT_NE(rounding_bits(key, 5), rounding_bits(key, 5 + 65536));
  EXPECT_NE(rounding_bits(key, 5), rounding_bits(key, 5 + (int64_t{1} << 48)));
  EXPECT_NE(rounding_bits(key, 5), rounding_bits(next, 5));
}

}  // namespace
}  // namespace brisk
