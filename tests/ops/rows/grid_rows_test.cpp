#include <gtest/gtest.h>

#include "ops/rows/mean_rows.h"
#include "ops/rows/merge_grid.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::Matrix;
using testing::Ragged;

// Swin's order of the four: down first.
TEST(MergeGrid, PutsFourRowsBesideEachOther) {
  const Ragged rows({24, 24}), merged({6, 6});
  for (const DType type : {DType::f32, DType::bf16}) {
    Matrix x(48, 5, type, 1), y(12, 20, type, 2), dx(48, 5, type, 3);
    cpu::merge_grid_forward({{4, 6}, x, merged.view(), y});
    for (int64_t s = 0; s < 2; ++s) {
      for (int64_t r = 0; r < 6; ++r) {
        const int64_t top = 24 * s + r / 3 * 12 + r % 3 * 2;
        const int64_t four[] = {top, top + 6, top + 1, top + 7};
        for (int64_t part = 0; part < 4; ++part) {
          for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(y.get(6 * s + r, 5 * part + c), x.get(four[part], c));
        }
      }
    }
    cpu::merge_grid_backward({{4, 6}, y, rows.view(), dx});
    expect_close(dx, x, 0, "there and back");
  }
}

TEST(MergeGrid, AddsAndLeavesRowsOfNoSequenceAtZero) {
  const Ragged rows({4}), merged({1});
  RowSet merged_and_spare = merged.view();
  merged_and_spare.rows = 3;
  Matrix x(7, 2, DType::f32, 1), y(3, 8, DType::f32, 2), dx(7, 2, DType::f32, 3), before(7, 2, DType::f32, 3);
  cpu::merge_grid_forward({{2, 2}, x, merged_and_spare, y});
  EXPECT_EQ(y.get(1, 0), 0);
  EXPECT_EQ(y.get(2, 7), 0);
  cpu::merge_grid_backward({{2, 2}, y, rows.view(), dx, true});
  for (int64_t r = 0; r < 7; ++r) {
    EXPECT_EQ(dx.get(r, 1), before.get(r, 1) + (r < 4 ? x.get(r, 1) : 0)) << r;
  }
  cpu::merge_grid_backward({{2, 2}, y, rows.view(), dx, false});
  EXPECT_EQ(dx.get(6, 0), 0);
}

TEST(MeanRows, AreOfEachSequenceWithoutItsFirstRows) {
  const Ragged rows({3, 2, 1});
  Matrix x(7, 20, DType::f32, 1), y(4, 20, DType::f32, 2), dx(7, 20, DType::f32, 3), before(7, 20, DType::f32, 3);
  cpu::mean_rows_forward({1, x, rows.view(), y});
  for (int64_t c = 0; c < 20; ++c) {
    EXPECT_FLOAT_EQ(y.get(0, c), (x.get(1, c) + x.get(2, c)) / 2);
    EXPECT_EQ(y.get(1, c), x.get(4, c));
    EXPECT_EQ(y.get(2, c), 0) << "a sequence of one row";
    EXPECT_EQ(y.get(3, c), 0) << "no sequence";
  }
  cpu::mean_rows_backward({1, y, rows.view(), dx, true});
  for (int64_t c = 0; c < 20; ++c) {
    EXPECT_EQ(dx.get(0, c), before.get(0, c));
    EXPECT_FLOAT_EQ(dx.get(2, c), before.get(2, c) + y.get(0, c) / 2);
    EXPECT_FLOAT_EQ(dx.get(4, c), before.get(4, c) + y.get(1, c));
    EXPECT_EQ(dx.get(6, c), before.get(6, c));
  }
}

}  // namespace
}  // namespace brisk
