#include "ops/grid_attention/grid_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/runtime.h"
#include "ops/grid_attention/window_bias.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;
using testing::Ragged;

struct Problem {
  GridWindows windows = GridWindows::of(14, 7, 7, 0);
  int64_t sequences = 2, heads = 2, head_width = 16;
  DType type = DType::f32;
  float dropout = 0;
  bool has_bias = true;
  int64_t spare = 0;  // rows of no sequence
};

// All tensors of one forward and backward.
class GridAttention {
 public:
  explicit GridAttention(const Problem& p)
      : problem_(p),
        ragged_(std::vector<int>(static_cast<size_t>(p.sequences), p.windows.rows())),
        columns_(p.heads * p.head_width),
        qkv(rows(), 3 * columns_, p.type, 3),
        bias(p.heads, int64_t{p.windows.places()} * p.windows.places(), DType::f32, 4),
        dy(rows(), columns_, p.type, 5),
        y(rows(), columns_, p.type, 99),
        log_sum_exp(rows(), p.heads, DType::f32, 0, 0),
        dqkv(rows(), 3 * columns_, p.type, 99),
        dbias(p.heads, bias.cols(), DType::f32, 99),
        dbias_parts(p.heads * grid_bias_parts(shape(), p.sequences), bias.cols(), DType::f32, 99) {}

  GridAttentionShape shape() const { return {problem_.windows, problem_.heads, problem_.head_width}; }
  GridAttentionForward forward_op() const {
    GridAttentionForward op{.shape = shape(), .qkv = qkv, .rows = ragged_.view()};
    op.rows.rows = rows();
    if (problem_.has_bias) op.bias = bias;
    op.dropout = {problem_.dropout, 1234};
    op.y = y;
    op.log_sum_exp = log_sum_exp;
    return op;
  }
  GridAttentionBackward backward_op() const {
    GridAttentionBackward op{.forward = forward_op(), .dy = dy, .dqkv = dqkv};
    if (problem_.has_bias) {
      op.dbias = dbias;
      op.dbias_parts = dbias_parts;
    }
    return op;
  }
  int64_t rows() const { return ragged_.view().rows + problem_.spare; }

 private:
  Problem problem_;
  Ragged ragged_;
  int64_t columns_;

 public:
  Matrix qkv, bias, dy, y, log_sum_exp, dqkv, dbias, dbias_parts;
};

void expect_as_reference(const Problem& p) {
  GridAttention expected(p), got(p);
  ref::grid_attention_forward(expected.forward_op());
  ref::grid_attention_backward(expected.backward_op());
  cpu::grid_attention_forward(got.forward_op());
  cpu::grid_attention_backward(got.backward_op());
  const double tolerance = p.type == DType::f32 ? 5e-6 : 1e-2;
  expect_close(got.y, expected.y, tolerance, "y");
  expect_close(got.dqkv, expected.dqkv, tolerance, "dqkv");
  if (p.has_bias) expect_close(got.dbias, expected.dbias, tolerance, "dbias");
}

TEST(GridWindows, HaveEachRowOnceAndInTheRegionThatIsSaid) {
  for (const GridWindows& windows :
       {GridWindows::of(6, 9, 3, 0), GridWindows::of(6, 9, 3, 1), GridWindows::of(28, 21, 7, 3),
        GridWindows::whole(4, 5, false), GridWindows::whole(4, 5, true)}) {
    std::set<int32_t> seen;
    for (int32_t number = 0; number < windows.regions(); ++number) {
      const GridRegion region = windows.region(number);
      for (int32_t i = 0; i < windows.rows_of(region); ++i) {
        const int32_t row = windows.row_of(region, i);
        EXPECT_TRUE(seen.insert(row).second) << row;
        EXPECT_EQ(windows.region_at(row), number) << row;
        EXPECT_EQ(windows.index_of(region, windows.place_of(region, i)), i);
      }
    }
    EXPECT_EQ(std::ssize(seen), windows.rows());
    EXPECT_EQ(*seen.rbegin(), windows.rows() - 1);
  }
}

TEST(WindowBias, TellsThePairsOfEachRow) {
  for (const GridWindows& windows : {GridWindows::of(6, 9, 3, 1), GridWindows::whole(3, 4, true)}) {
    std::set<std::pair<int32_t, int32_t>> seen;
    for (int32_t row = 0; row < window_bias_rows(windows); ++row) {
      for_pairs_of_bias_row(windows, row, [&](int32_t query, int32_t key) {
        EXPECT_EQ(window_bias_row(windows, query, key), row) << query << " " << key;
        EXPECT_TRUE(seen.emplace(query, key).second) << query << " " << key;
      });
    }
    EXPECT_EQ(std::ssize(seen), int64_t{windows.places()} * windows.places());
  }
}

// Swin's own words: the grid is moved up and left, divided into whole windows, and rows see those that were neighbours before.
TEST(GridAttention, OfShiftedWindowsIsThatOfAMovedGridWithAMask) {
  const int32_t height = 8, width = 12, window = 4, shift = 2;
  const Problem p{
      .windows = GridWindows::of(height, width, window, shift), .sequences = 1, .heads = 1, .head_width = 3};
  GridAttention got(p);
  cpu::grid_attention_forward(got.forward_op());
  const auto part_of = [&](int32_t at, int32_t size) { return at < size - window ? 0 : at < size - shift ? 1 : 2; };
  for (int32_t row = 0; row < height * width; ++row) {
    // Where the row is in the moved grid.
    const int32_t y = (row / width - shift + height) % height, x = (row % width - shift + width) % width;
    double total = 0, sums[3] = {};
    for (int32_t v = y / window * window; v < y / window * window + window; ++v) {
      for (int32_t u = x / window * window; u < x / window * window + window; ++u) {
        if (part_of(v, height) != part_of(y, height) || part_of(u, width) != part_of(x, width)) continue;
        const int32_t key = (v + shift) % height * width + (u + shift) % width;
        const int32_t place = y % window * window + x % window, key_place = v % window * window + u % window;
        double score = got.bias.get(0, place * window * window + key_place);
        for (int64_t c = 0; c < 3; ++c) score += got.qkv.get(row, c) * got.qkv.get(key, 3 + c) / std::sqrt(3.0);
        const double power = std::exp(score);
        total += power;
        for (int64_t c = 0; c < 3; ++c) sums[c] += power * got.qkv.get(key, 6 + c);
      }
    }
    for (int64_t c = 0; c < 3; ++c) ASSERT_NEAR(got.y.get(row, c), sums[c] / total, 1e-5) << row;
  }
}

TEST(GridAttention, IsTheReferencesOnEveryInstructionSet) {
  for_each_isa([](Isa) {
    for (const DType type : {DType::f32, DType::bf16}) {
      expect_as_reference({.type = type});
      expect_as_reference({.windows = GridWindows::of(14, 21, 7, 3), .heads = 5, .head_width = 8, .type = type});
      expect_as_reference(
          {.windows = GridWindows::whole(9, 10, true), .head_width = 20, .type = type, .dropout = 0.3f});
    }
    expect_as_reference({.windows = GridWindows::of(6, 4, 2, 1), .sequences = 3, .head_width = 32, .dropout = 0.2f});
    expect_as_reference({.windows = GridWindows::of(4, 4, 2, 1), .has_bias = false, .spare = 5});
    expect_as_reference({.windows = GridWindows::of(3, 5, 1, 0)});
  });
}

TEST(GridAttention, RowsOfNoSequenceBecomeZero) {
  GridAttention got({.windows = GridWindows::of(4, 4, 2, 1), .spare = 3});
  cpu::grid_attention_forward(got.forward_op());
  cpu::grid_attention_backward(got.backward_op());
  for (int64_t row = got.rows() - 3; row < got.rows(); ++row) {
    for (int64_t c = 0; c < got.y.cols(); ++c) ASSERT_EQ(got.y.get(row, c), 0);
    for (int64_t c = 0; c < got.dqkv.cols(); ++c) ASSERT_EQ(got.dqkv.get(row, c), 0);
  }
}

TEST(GridAttention, IsTheSameBitsWithAnyNumberOfThreads) {
  const Problem p{.windows = GridWindows::of(14, 14, 7, 3), .sequences = 3, .heads = 3, .dropout = 0.1f};
  GridAttention one(p), three(p);
  Runtime::current().set_threads(1);
  cpu::grid_attention_forward(one.forward_op());
  cpu::grid_attention_backward(one.backward_op());
  Runtime::current().set_threads(3);
  cpu::grid_attention_forward(three.forward_op());
  cpu::grid_attention_backward(three.backward_op());
  Runtime::current().set_threads(0);
  expect_close(three.y, one.y, 0, "y");
  expect_close(three.dqkv, one.dqkv, 0, "dqkv");
  expect_close(three.dbias, one.dbias, 0, "dbias");
}

}  // namespace
}  // namespace brisk
