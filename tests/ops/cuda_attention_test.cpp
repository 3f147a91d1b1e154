#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "on_card.h"
#include "ops/attention.h"
#include "ops/attention_ways_cuda.h"

namespace brisk {
namespace {

using testing::CardMatrix;
using testing::CardNumbers;
using testing::CardRows;
using testing::OnCard;
using testing::Side;

using CudaAttention = OnCard;

struct Problem {
  std::vector<int> queries;
  std::vector<int> keys = {};  // none: self-attention
  int64_t heads = 2, kv_heads = 2, head_width = 64;
  bool causal = true;
  DType type = DType::f32;
  float dropout = 0;
  int spare = 0;  // rows of no sequence
};

// Queries, keys and values are columns of one matrix, as in a model, where they have the same rows.
class Attention {
 public:
  explicit Attention(const Problem& p)
      : problem_(p),
        rows_(p.queries, p.spare),
        key_rows_(p.keys.empty() ? p.queries : p.keys, p.spare),
        q_columns_(p.heads * p.head_width),
        k_columns_(p.kv_heads * p.head_width),
        q_(rows_.rows(), q_columns_, p.type, 1),
        kv_(key_rows_.rows(), 2 * k_columns_, p.type, 2),
        dy_(rows_.rows(), q_columns_, p.type, 3),
        y(rows_.rows(), q_columns_, p.type, 0, 0),
        log_sum_exp(rows_.rows(), p.heads, DType::f32, 0, 0),
        dq(rows_.rows(), q_columns_, p.type, 99),
        dkv(key_rows_.rows(), 2 * k_columns_, p.type, 99) {}

  AttentionForward forward(Side side) const {
    AttentionForward op;
    op.shape = {problem_.heads, problem_.kv_heads, problem_.head_width,
                1 / std::sqrt(static_cast<float>(problem_.head_width)), problem_.causal};
    op.q = q_.at(side);
    op.k = kv_.at(side).columns(0, k_columns_);
    op.v = kv_.at(side).columns(k_columns_, k_columns_);
    op.queries = rows_.at(side);
    op.k_begin = key_rows_.at(side).starts;
    op.k_end = key_rows_.at(side).starts + 1;
    op.longest_keys = key_rows_.at(side).longest;
    op.dropout = {problem_.dropout, 1234};
    op.y = y.at(side);
    op.log_sum_exp = log_sum_exp.at(side);
    return op;
  }
  AttentionBackward backward(Side side) const {
    return {forward(side), dy_.at(side), dq.at(side), dkv.at(side).columns(0, k_columns_),
            dkv.at(side).columns(k_columns_, k_columns_)};
  }
  // What the reference leaves alone is 0 on the card.
  void clear_spare_rows() {
    const auto clear = [&](CardMatrix& m) {
      for (int64_t r = m.host().rows() - problem_.spare; r < m.host().rows(); ++r) {
        for (int64_t c = 0; c < m.host().cols(); ++c) m.host().set(r, c, 0);
      }
    };
    clear(y);
    clear(dq);
    clear(dkv);
  }

 private:
  Problem problem_;
  CardRows rows_, key_rows_;
  int64_t q_columns_, k_columns_;
  CardMatrix q_, kv_, dy_;

 public:
  CardMatrix y, log_sum_exp, dq, dkv;
};

void expect_as_reference(const Problem& problem) {
  SCOPED_TRACE(problem.head_width);
  const double tolerance = problem.type == DType::f32 ? 3e-5 : 1.5e-2;
  Attention a(problem);
  ref::attention_forward(a.forward(Side::host));
  cuda::attention_forward(a.forward(Side::card));
  a.clear_spare_rows();
  a.y.expect_close(tolerance, "y");
  struct Block {
    int warps, rows_of_warp;
    bool hopper;
  };
  for (const Block block : {Block{4, 16, false}, {4, 32, false}, {8, 16, false}, {4, 16, true}, {8, 16, true}}) {
    SCOPED_TRACE(block.hopper ? "hopper" : block.warps == 4 ? "4 warps" : "8 warps");
    a.y.spoil();
    if (cuda::attention_forward(a.forward(Side::card), block.warps, block.rows_of_warp, block.hopper)) {
      a.y.expect_close(tolerance, "y");
    }
  }
  const testing::Matrix& got = a.log_sum_exp.card();
  for (int64_t r = 0; r < got.rows() - problem.spare; ++r) {
    for (int64_t h = 0; h < problem.heads; ++h) {
      const float expected = a.log_sum_exp.host().get(r, h);
      if (std::isinf(expected)) {  // it sees nothing
        ASSERT_EQ(got.get(r, h), expected) << r << ", " << h;
      } else {
        ASSERT_NEAR(got.get(r, h), expected, tolerance * (1 + std::fabs(expected))) << r << ", " << h;
      }
    }
  }
  // Backward from the reference's y, so that one op's error is not blamed on the other.
  a.y.take_reference();
  a.log_sum_exp.take_reference();
  ref::attention_backward(a.backward(Side::host));
  cuda::attention_backward(a.backward(Side::card));
  a.clear_spare_rows();
  a.dq.expect_close(tolerance, "dq");
  a.dkv.expect_close(tolerance, "dk and dv");
  using Way = cuda::AttentionWay;
  for (const Way way : {Way::by_sequence, Way::by_tile, Way::hopper, Way::hopper_pair}) {
    a.dq.spoil();
    a.dkv.spoil();
    if (!cuda::attention_backward(a.backward(Side::card), way)) continue;
    SCOPED_TRACE(static_cast<int>(way));
    a.dq.expect_close(tolerance, "dq");
    a.dkv.expect_close(tolerance, "dk and dv");
  }
}

void expect_as_reference_in_both_types(Problem problem) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    problem.type = type;
    expect_as_reference(problem);
  }
}

TEST_F(CudaAttention, IsTheReferencesOnRaggedSequences) {
  for (const bool causal : {true, false}) {
    expect_as_reference_in_both_types({.queries = {1, 7, 64, 2, 130, 16, 3, 65}, .causal = causal});
  }
}

TEST_F(CudaAttention, IsTheReferencesForEveryHeadWidth) {
  for (const int64_t width : {1, 8, 16, 20, 24, 32, 48, 64, 80, 96, 100, 112, 128, 160, 256}) {
    expect_as_reference_in_both_types({.queries = {1, 70, 6}, .head_width = width});
  }
}

TEST_F(CudaAttention, IsTheReferencesOnLongSequences) {
  for (const int64_t width : {64, 128}) {
    expect_as_reference_in_both_types({.queries = {300, 513}, .heads = 1, .kv_heads = 1, .head_width = width});
  }
}

TEST_F(CudaAttention, IsTheReferencesOnSequencesOfWholeTiles) {
  for (const bool causal : {true, false}) {
    expect_as_reference_in_both_types({.queries = {128, 256, 64}, .heads = 1, .kv_heads = 1, .causal = causal});
    expect_as_reference_in_both_types({.queries = {128, 126}, .heads = 1, .kv_heads = 1, .causal = causal});
    expect_as_reference_in_both_types({.queries = {250, 256, 255}, .heads = 1, .kv_heads = 1, .causal = causal});
  }
}

TEST_F(CudaAttention, IsTheReferencesWithGroupedKeyHeads) {
  for (const int64_t width : {16, 64}) {
    expect_as_reference_in_both_types({.queries = {90, 1, 9}, .heads = 6, .kv_heads = 2, .head_width = width});
  }
}

TEST_F(CudaAttention, IsTheReferencesWithDropout) {
  for (const bool causal : {true, false}) {
    expect_as_reference_in_both_types({.queries = {1, 60, 150, 5}, .causal = causal, .dropout = 0.3f});
  }
}

TEST_F(CudaAttention, IsTheReferencesWhenQueriesAreTheLastOfManyKeys) {
  expect_as_reference_in_both_types({.queries = {1, 1, 5, 30}, .keys = {1, 300, 40, 31}, .heads = 4, .kv_heads = 2});
}

TEST_F(CudaAttention, IsTheReferencesAcrossAnEncodersKeys) {
  expect_as_reference_in_both_types({.queries = {10, 40, 3}, .keys = {33, 2, 100}, .causal = false});
}

// More queries than keys: the first see nothing, and answer 0.
TEST_F(CudaAttention, QueriesThatSeeNothingAnswerZero) {
  expect_as_reference_in_both_types({.queries = {70, 3}, .keys = {4, 3}});
}

TEST_F(CudaAttention, TakesFirstRowsOfSequencesAloneAndEmptyOnes) {
  for (const float dropout : {0.0f, 0.3f}) {
    expect_as_reference_in_both_types(
        {.queries = {1, 1, 0, 1, 1}, .keys = {13, 1, 4, 200, 70}, .causal = false, .dropout = dropout});
  }
  expect_as_reference_in_both_types({.queries = {}});
}

TEST_F(CudaAttention, RowsOfNoSequenceBecomeZero) {
  for (const int64_t width : {20, 64}) {
    expect_as_reference_in_both_types({.queries = {30, 70}, .head_width = width, .spare = 41});
  }
}

TEST_F(CudaAttention, GivesTheSameBitsEveryTime) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    const Problem problem{.queries = {200, 31, 300}, .heads = 4, .kv_heads = 2, .type = type};
    Attention a(problem), b(problem);
    for (const Attention* run : {&a, &b}) {
      cuda::attention_forward(run->forward(Side::card));
      cuda::attention_backward(run->backward(Side::card));
    }
    for (auto [first, second] : {std::pair{&a.y, &b.y}, {&a.dq, &b.dq}, {&a.dkv, &b.dkv}}) {
      const testing::Matrix &x = first->card(), &y = second->card();
      for (int64_t r = 0; r < x.rows(); ++r) {
        for (int64_t c = 0; c < x.cols(); ++c) ASSERT_EQ(x.get(r, c), y.get(r, c)) << r << ", " << c;
      }
    }
  }
}

}  // namespace
}  // namespace brisk
