#include "ops/rotary/rotary.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/threads.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;
using testing::Ragged;

TEST(Rotary, ReferenceTurnsTheFirstPairByThePosition) {
  const Ragged rows({3});
  const Matrix x(3, 8), y(3, 8);
  ref::rotary({x, y, rows.view(), 8, 4, 10000.0f, false});
  EXPECT_NEAR(y.get(2, 0), x.get(2, 0) * std::cos(2.0) - x.get(2, 1) * std::sin(2.0), 1e-6);
  EXPECT_NEAR(y.get(2, 1), x.get(2, 0) * std::sin(2.0) + x.get(2, 1) * std::cos(2.0), 1e-6);
  // The second pair of each head turns by position / 10000^(2/4), and heads alike.
  EXPECT_NEAR(y.get(2, 6), x.get(2, 6) * std::cos(0.02) - x.get(2, 7) * std::sin(0.02), 1e-6);
  EXPECT_EQ(y.get(0, 5), x.get(0, 5)) << "position 0 turns nothing";
}

TEST(Rotary, MatchesTheReference) {
  const Ragged rows({1, 40, 7, 300});
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const int64_t head_width : {2, 8, 24, 64}) {
      for (const bool inverse : {false, true}) {
        const int64_t rotated = 3 * head_width, columns = rotated + 19;
        const Matrix x(348, columns, type, 1, 1.0, columns + 5);
        Matrix expected(348, columns, type);
        ref::rotary({x, expected, rows.view(), rotated, head_width, 500.0f, inverse});
        for_each_isa([&](Isa) {
          Matrix y(348, columns, type, 7);
          cpu::rotary({x, y, rows.view(), rotated, head_width, 500.0f, inverse});
          expect_close(y, expected, type == DType::f32 ? 1e-6 : 8e-3, "y");
        });
      }
    }
  }
}

TEST(Rotary, TheOppositeTurnInPlaceRestoresTheInput) {
  const Ragged rows({100, 3});
  for_each_isa([&](Isa) {
    const Matrix original(103, 96, DType::f32, 1), x(103, 96, DType::f32, 1);
    cpu::rotary({x, x, rows.view(), 64, 32, 10000.0f, false});
    EXPECT_NE(x.get(50, 0), original.get(50, 0));
    EXPECT_EQ(x.get(50, 70), original.get(50, 70)) << "columns past `rotated` stay";
    cpu::rotary({x, x, rows.view(), 64, 32, 10000.0f, true});
    expect_close(x, original, 1e-6, "x");
  });
}

TEST(Rotary, TurnsASingleRowAtAFarPosition) {
  for_each_isa([&](Isa) {
    const int32_t position = 3001, sequence = 0, starts[2] = {0, 1};
    const RowSet rows{1, 1, 1, starts, &position, &sequence};
    const Matrix x(1, 64);
    Matrix y(1, 64), expected(1, 64);
    ref::rotary({x, expected, rows, 64, 64, 10000.0f, false});
    cpu::rotary({x, y, rows, 64, 64, 10000.0f, false});
    expect_close(y, expected, 1e-6, "y");
  });
}

TEST(Rotary, AnEmptyBatchDoesNothing) {
  const Ragged none({});
  const Matrix x(0, 64);
  for_each_isa([&](Isa) { cpu::rotary({x, x, none.view(), 64, 64, 10000.0f, false}); });
}

}  // namespace
}  // namespace brisk
