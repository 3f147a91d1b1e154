#include "ops/rows/rows_copy.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/runtime.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;
using testing::Ragged;

constexpr DType kTypes[] = {DType::f32, DType::bf16};

TEST(CopyRows, CopiesConvertsOrAdds) {
  const Matrix from(2, 3, DType::f32, 1);
  Matrix to(2, 3, DType::bf16, 2), before(2, 3, DType::bf16, 2);
  ref::copy_rows(from, to, true);
  EXPECT_EQ(to.get(1, 2), to_float(to_bf16(before.get(1, 2) + from.get(1, 2))));
  ref::copy_rows(from, to, false);
  EXPECT_EQ(to.get(1, 2), to_float(to_bf16(from.get(1, 2))));
}

// A part of the columns of wider matrices: what lies next to it stays.
TEST(CopyRows, MatchesTheReference) {
  for (const DType from_type : kTypes) {
    for (const DType to_type : kTypes) {
      for (const int64_t width : {1, 13, 64, 300}) {
        for (const bool adds : {false, true}) {
          SCOPED_TRACE(::testing::Message() << width << " wide, adds " << adds);
          const Matrix from(70, width + 3, from_type, 1, 1.0, width + 8);
          Matrix expected(70, width + 9, to_type, 2);
          ref::copy_rows(from.view().columns(2, width), expected.view().columns(5, width), adds);
          for_each_isa([&](Isa) {
            Matrix to(70, width + 9, to_type, 2);
            cpu::copy_rows(from.view().columns(2, width), to.view().columns(5, width), adds);
            expect_close(to, expected, 0, "to");
          });
        }
      }
    }
  }
}

// Ranges of a key/value cache, of which rows and columns are a part of a wider matrix, too.
TEST(MoveRows, CopiesRangesWithinAMatrix) {
  const std::vector<RowMove> moves = {{0, 20, 3}, {0, 30, 5}, {12, 8, 1}, {40, 41, 0}};
  for (const DType type : kTypes) {
    for (const int64_t stride : {7, 16}) {
      Matrix moved(50, 7, type, 1, 1.0, stride), expected(50, 7, type, 1, 1.0, stride);
      const Matrix before(50, 7, type, 1, 1.0, stride);
      cpu::move_rows(moved, moves.data(), std::ssize(moves), 5);
      ref::move_rows(expected, moves.data(), std::ssize(moves), 5);
      expect_close(moved, expected, 0, "moved");
      for (int64_t c = 0; c < 7; ++c) {
        EXPECT_EQ(moved.get(22, c), before.get(2, c));
        EXPECT_EQ(moved.get(23, c), before.get(23, c));
        EXPECT_EQ(moved.get(34, c), before.get(4, c));
        EXPECT_EQ(moved.get(8, c), before.get(12, c));
        EXPECT_EQ(moved.get(41, c), before.get(41, c));
      }
    }
  }
}

TEST(ClearRows, MatchesTheReferenceAndLeavesTheColumnsBeside) {
  for (const DType type : kTypes) {
    for (const int64_t width : {0, 1, 40}) {
      Matrix expected(50, 44, type, 1), cleared(50, 44, type, 1);
      ref::clear_rows(expected.view().columns(3, width));
      cpu::clear_rows(cleared.view().columns(3, width));
      expect_close(cleared, expected, 0, "cleared");
      EXPECT_NE(cleared.get(49, 2), 0);
      EXPECT_EQ(cleared.get(49, 3) == 0, width > 0);
    }
  }
}

TEST(RowsOfSequences, AreAppendedToACacheAndGatheredAsTheReferenceDoes) {
  const Ragged rows({3, 1, 4});
  const std::vector<int32_t> begin = {0, 10, 20};
  for (const DType type : kTypes) {
    const Matrix from(8, 24, type, 1, 1.0, 30);
    Matrix expected(30, 24, DType::f32, 2), cache(30, 24, DType::f32, 2), expected_last(3, 24, type), last(3, 24, type);
    ref::append_to_cache(from, rows.view(), begin.data(), expected);
    cpu::append_to_cache(from, rows.view(), begin.data(), cache);
    expect_close(cache, expected, 0, "cache");
    EXPECT_EQ(cache.get(21, 7), from.get(5, 7));
    ref::gather_last_rows(from, rows.view(), expected_last);
    cpu::gather_last_rows(from, rows.view(), last);
    expect_close(last, expected_last, 0, "last rows");
    EXPECT_EQ(last.get(1, 3), from.get(3, 3));
  }
}

}  // namespace
}  // namespace brisk
