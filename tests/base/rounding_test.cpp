#include "base/rounding.h"

#include <gtest/gtest.h>

namespace brisk {
namespace {

TEST(LeadingBits, AreTheSameForNumbersNearEachOther) {
  for (int64_t small = 0; small <= 8; ++small) EXPECT_EQ(leading_bits(small, 3), small);
  EXPECT_EQ(leading_bits(9, 3), 8);
  EXPECT_EQ(leading_bits(10, 3), 10);
  EXPECT_EQ(leading_bits(1234, 3), 1024);
  EXPECT_EQ(leading_bits(1279, 3), 1024);
  EXPECT_EQ(leading_bits(1280, 3), 1280);
  EXPECT_EQ(leading_bits(1279, 4), 1152);
}

}  // namespace
}  // namespace brisk
