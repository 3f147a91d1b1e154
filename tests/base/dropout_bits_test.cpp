#include <gtest/gtest.h>

#include "base/random.h"

namespace brisk {
namespace {

TEST(DropoutBits, DropTheShareThatIsAskedForInEveryColumn) {
  constexpr int kRows = 200000;
  for (const double probability : {0.1, 0.5}) {
    const uint32_t threshold = dropout_threshold(probability);
    for (const uint32_t column : {0u, 3u, 8u, 11u, 24u}) {
      int dropped = 0;
      for (uint32_t row = 0; row < kRows; ++row) {
        dropped += dropout_bits(random_row_key(7, row, 5), column) < threshold;
      }
      EXPECT_NEAR(dropped / double{kRows}, probability, 0.005) << "column " << column;
    }
  }
}

TEST(DropoutBits, OfColumnsThatShareADrawAreIndependent) {
  constexpr int kRows = 200000;
  const uint32_t threshold = dropout_threshold(0.3);
  for (const uint32_t column : {0u, 5u, 16u, 23u}) {
    int both = 0;
    for (uint32_t row = 0; row < kRows; ++row) {
      const uint32_t key = random_row_key(7, row, 5);
      both += dropout_bits(key, column) < threshold && dropout_bits(key, column + 8) < threshold;
    }
    EXPECT_NEAR(both / double{kRows}, 0.09, 0.005) << "columns " << column << " and " << column + 8;
  }
}

TEST(DropoutBits, AreThoseOfOneDraw) {
  const uint32_t bits = random_bits(9, 21 & ~8);
  EXPECT_EQ(dropout_bits(9, 21), bits << 16);  // 16 + 5
  EXPECT_EQ(dropout_bits(9, 29), bits);        // and 8 further
}

}  // namespace
}  // namespace brisk
