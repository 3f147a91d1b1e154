#include "ops/attention/attention.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "base/runtime.h"
#include "support/numeric.h"
#include "support/sanitized.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;
using testing::Ragged;
using testing::slope_of;

struct Problem {
  std::vector<int> queries = {};
  std::vector<int> keys = {};  // empty: self-attention
  int64_t heads = 2, kv_heads = 2, head_width = 16;
  bool causal = true;
  DType type = DType::f32;
  float dropout = 0;
  bool joint = false;  // q, k, v are columns of one matrix
  bool has_entropy = false;
  bool has_bias = false;
  uint64_t seed = 7;
};

// All tensors of one forward and backward.
class Attention {
 public:
  explicit Attention(const Problem& p)
      : problem_(p),
        rows_(p.queries),
        key_rows_(p.keys.empty() ? p.queries : p.keys),
        q_columns_(p.heads * p.head_width),
        k_columns_(p.kv_heads * p.head_width),
        q_(rows(), q_columns_, p.type, p.seed, 1.0, p.joint ? q_columns_ + 2 * k_columns_ : 0),
        k_(keys(), k_columns_, p.type, p.seed + 1),
        v_(keys(), k_columns_, p.type, p.seed + 2),
        dy_(rows(), q_columns_, p.type, p.seed + 3),
        y(rows(), q_columns_, p.type, 0, 0),
        log_sum_exp(rows(), p.heads, DType::f32, 0, 0),
        entropy(rows(), 1, DType::f32, 0, 0),
        dentropy(rows(), 1, DType::f32, p.seed + 4),
        bias(p.heads, 2 * std::max<int64_t>(1, longest()) + 3, DType::f32, p.seed + 5),
        dbias(p.heads, bias.cols(), DType::f32, 99),
        dbias_parts(p.heads, rows() + keys(), DType::f32, 99),
        dq(rows(), q_columns_, p.type, 99),
        dk(keys(), k_columns_, p.type, 99),
        dv(keys(), k_columns_, p.type, 99) {
    if (p.joint) {
      for (int64_t r = 0; r < rows(); ++r) {
        const Tensor all{q_.view().data, p.type, rows(), q_columns_ + 2 * k_columns_, q_columns_ + 2 * k_columns_};
        for (int64_t c = 0; c < k_columns_; ++c) {
          copy_element(k_.view(), r, c, all, r, q_columns_ + c);
          copy_element(v_.view(), r, c, all, r, q_columns_ + k_columns_ + c);
        }
      }
    }
  }

  AttentionForward forward_op() const {
    AttentionForward op;
    op.shape = {problem_.heads, problem_.kv_heads, problem_.head_width,
                1 / std::sqrt(static_cast<float>(problem_.head_width)), problem_.causal};
    op.q = q_;
    op.k = k_;
    op.v = v_;
    if (problem_.joint) {
      const int64_t stride = q_columns_ + 2 * k_columns_;
      const Tensor all{q_.view().data, problem_.type, rows(), stride, stride};
      op.k = all.columns(q_columns_, k_columns_);
      op.v = all.columns(q_columns_ + k_columns_, k_columns_);
    }
    op.queries = rows_.view();
    op.k_begin = key_rows_.starts().data();
    op.k_end = key_rows_.starts().data() + 1;
    op.longest_keys = key_rows_.view().longest;
    op.dropout = {problem_.dropout, 1234};
    op.y = y;
    op.log_sum_exp = log_sum_exp;
    if (problem_.has_entropy) op.entropy = entropy;
    if (problem_.has_bias) op.bias = bias;
    return op;
  }
  AttentionBackward backward_op() const {
    AttentionBackward op{forward_op(), dy_, dq, dk, dv, problem_.has_entropy ? dentropy.view() : Tensor{}};
    if (problem_.has_bias) {
      op.dbias = dbias;
      op.dbias_parts = dbias_parts;
    }
    return op;
  }

  void run_reference() {
    ref::attention_forward(forward_op());
    ref::attention_backward(backward_op());
  }
  void run_cpu() {
    cpu::attention_forward(forward_op());
    cpu::attention_backward(backward_op());
  }
  // sum of y * dy, and of the entropies times their gradients
  double loss() const {
    double sum = 0;
    for (int64_t r = 0; r < rows(); ++r) {
      if (problem_.has_entropy) sum += double{entropy.get(r, 0)} * dentropy.get(r, 0);
      for (int64_t c = 0; c < q_columns_; ++c) sum += double{y.get(r, c)} * dy_.get(r, c);
    }
    return sum;
  }

  int64_t rows() const { return rows_.view().rows; }
  int64_t keys() const { return key_rows_.view().rows; }
  int64_t longest() const { return std::max(rows_.view().longest, key_rows_.view().longest); }
  Matrix& q() { return q_; }
  Matrix& k() { return k_; }
  Matrix& v() { return v_; }
  Matrix& dy() { return dy_; }

 private:
  static void copy_element(const Tensor& from, int64_t r, int64_t c, const Tensor& to, int64_t to_r, int64_t to_c) {
    if (from.type == DType::f32) to.f32()[to_r * to.stride + to_c] = from.f32()[r * from.stride + c];
    if (from.type == DType::bf16) to.bf16()[to_r * to.stride + to_c] = from.bf16()[r * from.stride + c];
  }

  Problem problem_;
  Ragged rows_, key_rows_;
  int64_t q_columns_, k_columns_;
  Matrix q_, k_, v_, dy_;

 public:
  Matrix y, log_sum_exp, entropy, dentropy, bias, dbias, dbias_parts, dq, dk, dv;
};

void copy_values(const Matrix& from, Matrix& to) {
  for (int64_t r = 0; r < from.rows(); ++r) {
    for (int64_t c = 0; c < from.cols(); ++c) to.set(r, c, from.get(r, c));
  }
}

void expect_same_as_reference(const Problem& problem, double tolerance) {
  Attention expected(problem);
  expected.run_reference();
  for_each_isa([&](Isa) {
    Attention got(problem);
    cpu::attention_forward(got.forward_op());
    expect_close(got.y, expected.y, tolerance, "y");
    if (problem.has_entropy) expect_close(got.entropy, expected.entropy, tolerance, "entropy");
    // Queries that see nothing have -inf in both, and infinities have no difference.
    Matrix expected_log(got.rows(), problem.heads);
    for (int64_t r = 0; r < got.rows(); ++r) {
      for (int64_t h = 0; h < problem.heads; ++h) {
        const bool nothing_seen = std::isinf(expected.log_sum_exp.get(r, h)) && std::isinf(got.log_sum_exp.get(r, h));
        expected_log.set(r, h, nothing_seen ? 0 : expected.log_sum_exp.get(r, h));
        if (nothing_seen) got.log_sum_exp.set(r, h, 0);
      }
    }
    expect_close(got.log_sum_exp, expected_log, tolerance, "log_sum_exp");
    // Backward from the reference's y, so that one op's error is not blamed on the other.
    Attention back(problem);
    copy_values(expected.y, back.y);
    copy_values(expected.log_sum_exp, back.log_sum_exp);
    cpu::attention_backward(back.backward_op());
    expect_close(back.dq, expected.dq, tolerance, "dq");
    expect_close(back.dk, expected.dk, tolerance, "dk");
    expect_close(back.dv, expected.dv, tolerance, "dv");
    if (problem.has_bias) expect_close(back.dbias, expected.dbias, 4 * tolerance, "dbias");
  });
}

void expect_same_bits(const Matrix& a, const Matrix& b, const char* what) {
  for (int64_t r = 0; r < a.rows(); ++r) {
    for (int64_t c = 0; c < a.cols(); ++c) ASSERT_EQ(a.get(r, c), b.get(r, c)) << what << " at " << r << ", " << c;
  }
}

TEST(Attention, ReferenceGradientsAreTheSlopesOfItsForward) {
  for (const bool causal : {false, true}) {
    for (const float dropout : {0.0f, 0.4f}) {
      const Problem problem{.queries = {4, 1, 3},
                            .keys = {5, 2, 3},
                            .heads = 2,
                            .kv_heads = 1,
                            .head_width = 4,
                            .causal = causal,
                            .dropout = dropout,
                            .has_entropy = causal};
      Attention a(problem);
      a.run_reference();
      Attention probe(problem);
      const auto slope = [&](Matrix& of, int64_t r, int64_t c) {
        return slope_of(of, r, c, 1e-2f, [&] {
          ref::attention_forward(probe.forward_op());
          return probe.loss();
        });
      };
      for (int64_t r = 0; r < a.rows(); ++r) {
        for (int64_t c = 0; c < 8; ++c)
          ASSERT_NEAR(a.dq.get(r, c), slope(probe.q(), r, c), 1e-3) << "dq " << r << " " << c;
      }
      for (int64_t r = 0; r < a.keys(); ++r) {
        for (int64_t c = 0; c < 4; ++c) {
          ASSERT_NEAR(a.dk.get(r, c), slope(probe.k(), r, c), 1e-3) << "dk " << r << " " << c;
          ASSERT_NEAR(a.dv.get(r, c), slope(probe.v(), r, c), 1e-3) << "dv " << r << " " << c;
        }
      }
    }
  }
}

TEST(Attention, TheReferencesBiasHasTheSlopesOfItsForward) {
  for (const bool causal : {false, true}) {
    for (const std::vector<int>& keys : {std::vector<int>{4, 1, 3}, {5, 1, 4}}) {
      const Problem problem{.queries = {4, 1, 3},
                            .keys = keys,
                            .heads = 2,
                            .kv_heads = 2,
                            .head_width = 4,
                            .causal = causal,
                            .dropout = 0.3f,
                            .has_bias = true};
      Attention a(problem), probe(problem);
      a.run_reference();
      for (int64_t h = 0; h < 2; ++h) {
        for (int64_t c = 0; c < a.bias.cols(); ++c) {
          const double slope = slope_of(probe.bias, h, c, 1e-2f, [&] {
            ref::attention_forward(probe.forward_op());
            return probe.loss();
          });
          ASSERT_NEAR(a.dbias.get(h, c), slope, 1e-3) << h << " " << c;
        }
      }
    }
  }
}

// A bias that grows with the distance so much that each query sees the key after it, or the last, alone.
TEST(Attention, ABiasIsOfTheDistanceFromTheQueryToTheKey) {
  for (const bool causal : {false, true}) {
    Attention a({.queries = {6}, .heads = 1, .kv_heads = 1, .head_width = 8, .causal = causal, .has_bias = true});
    const int64_t middle = a.bias.cols() / 2;
    for (int64_t c = 0; c < a.bias.cols(); ++c) a.bias.set(0, c, c - middle == (causal ? -1 : 1) ? 1000.0f : 0.0f);
    for_each_isa([&](Isa) {
      cpu::attention_forward(a.forward_op());
      for (int64_t r = 1; r < 5; ++r) EXPECT_NEAR(a.y.get(r, 3), a.v().get(causal ? r - 1 : r + 1, 3), 1e-6) << r;
    });
  }
}

TEST(Attention, MatchesTheReferenceWithABiasOfDistances) {
  for (const int64_t width : {2, 16, 40}) {
    for (const bool causal : {false, true}) {
      for (const float dropout : {0.0f, 0.3f}) {
        SCOPED_TRACE(::testing::Message() << width << " wide, causal " << causal << ", dropout " << dropout);
        expect_same_as_reference({.queries = {1, 33, 130, 16, 5, 0, 300},
                                  .heads = 3,
                                  .kv_heads = 3,
                                  .head_width = width,
                                  .causal = causal,
                                  .dropout = dropout,
                                  .has_bias = true},
                                 3e-5);
      }
    }
  }
  expect_same_as_reference({.queries = {1, 1, 5, 30, 3}, .keys = {1, 300, 40, 31, 300}, .has_bias = true}, 3e-5);
  expect_same_as_reference({.queries = {50, 3, 1},
                            .heads = 4,
                            .kv_heads = 4,
                            .head_width = 32,
                            .type = DType::bf16,
                            .dropout = 0.2f,
                            .joint = true,
                            .has_bias = true},
                           1.5e-2);
}

TEST(Attention, ReferenceSoftmaxOfEqualScoresIsTheMean) {
  Attention a({.queries = {3}, .heads = 1, .kv_heads = 1, .head_width = 4, .causal = true});
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 4; ++c) a.q().set(r, c, 0);
  }
  ref::attention_forward(a.forward_op());
  EXPECT_NEAR(a.y.get(0, 0), a.v().get(0, 0), 1e-6);
  EXPECT_NEAR(a.y.get(2, 1), (a.v().get(0, 1) + a.v().get(1, 1) + a.v().get(2, 1)) / 3, 1e-6);
  EXPECT_NEAR(a.log_sum_exp.get(2, 0), std::log(3.0), 1e-6);
}

TEST(Attention, MatchesTheReferenceOnRaggedSequences) {
  expect_same_as_reference({.queries = {1, 7, 64, 2, 130, 16, 3, 25}, .heads = 3, .kv_heads = 3, .head_width = 64},
                           2e-5);
}

TEST(Attention, MatchesTheReferenceWithoutTheCausalMask) {
  expect_same_as_reference({.queries = {1, 33, 5, 100}, .head_width = 32, .causal = false}, 2e-5);
}

TEST(Attention, MatchesTheReferenceForHeadWidthsThatAreNoWholeVectors) {
  for (const int64_t width : {1, 4, 8, 20, 48, 80, 100}) {
    SCOPED_TRACE(width);
    expect_same_as_reference({.queries = {1, 19, 6}, .head_width = width}, 2e-5);
  }
}

// Heads of up to four columns: kernels with a query in each lane.
TEST(Attention, MatchesTheReferenceForNarrowHeads) {
  for (const int64_t width : {1, 2, 3, 4}) {
    for (const bool causal : {false, true}) {
      for (const float dropout : {0.0f, 0.3f}) {
        SCOPED_TRACE(::testing::Message() << width << " wide, causal " << causal << ", dropout " << dropout);
        expect_same_as_reference({.queries = {1, 33, 130, 16, 5, 0},
                                  .heads = 9,
                                  .kv_heads = 9,
                                  .head_width = width,
                                  .causal = causal,
                                  .dropout = dropout},
                                 3e-5);
      }
    }
  }
  expect_same_as_reference(
      {.queries = {1, 5, 30, 4}, .keys = {300, 40, 31, 2}, .heads = 3, .kv_heads = 3, .head_width = 2}, 3e-5);
  expect_same_as_reference({.queries = {50, 3},
                            .heads = 32,
                            .kv_heads = 32,
                            .head_width = 2,
                            .type = DType::bf16,
                            .dropout = 0.2f,
                            .joint = true},
                           1.5e-2);
}

TEST(Attention, MatchesTheReferenceWithTheEntropyOfItsWeights) {
  for (const int64_t width : {2, 4, 8, 20}) {
    for (const bool causal : {false, true}) {
      for (const float dropout : {0.0f, 0.3f}) {
        SCOPED_TRACE(::testing::Message() << width << " wide, causal " << causal << ", dropout " << dropout);
        expect_same_as_reference({.queries = {1, 33, 70, 16, 5, 0},
                                  .heads = 8,
                                  .kv_heads = 8,
                                  .head_width = width,
                                  .causal = causal,
                                  .dropout = dropout,
                                  .has_entropy = true},
                                 5e-5);
      }
    }
  }
  expect_same_as_reference({.queries = {1, 5, 30, 4},
                            .keys = {300, 40, 31, 2},
                            .heads = 4,
                            .kv_heads = 4,
                            .head_width = 8,
                            .has_entropy = true},
                           5e-5);
  expect_same_as_reference({.queries = {50, 3},
                            .heads = 8,
                            .kv_heads = 8,
                            .head_width = 8,
                            .type = DType::bf16,
                            .dropout = 0.2f,
                            .joint = true,
                            .has_entropy = true},
                           2e-2);
}

TEST(Attention, AnEvenRowHasTheEntropyOfItsKeys) {
  Attention a({.queries = {5}, .heads = 2, .kv_heads = 2, .head_width = 8, .has_entropy = true});
  for (int64_t r = 0; r < 5; ++r) {
    for (int64_t c = 0; c < a.q().cols(); ++c) a.q().set(r, c, 0);
  }
  for_each_isa([&](Isa) {
    cpu::attention_forward(a.forward_op());
    for (int64_t r = 0; r < 5; ++r) EXPECT_NEAR(a.entropy.get(r, 0), std::log(r + 1.0), 1e-6) << r;
  });
}

TEST(Attention, MatchesTheReferenceWithGroupedKeyHeads) {
  expect_same_as_reference({.queries = {40, 1, 9}, .heads = 6, .kv_heads = 2, .head_width = 16}, 2e-5);
}

TEST(Attention, MatchesTheReferenceWhenQueriesAreTheLastOfManyKeys) {
  expect_same_as_reference({.queries = {1, 1, 5, 30}, .keys = {1, 300, 40, 31}, .heads = 4, .kv_heads = 2}, 2e-5);
}

TEST(Attention, MatchesTheReferenceAcrossAnEncodersKeys) {
  expect_same_as_reference({.queries = {10, 40, 3}, .keys = {33, 2, 100}, .causal = false}, 2e-5);
}

// A classifier's last layer: one query a sequence, or none.
TEST(Attention, MatchesTheReferenceForTheFirstRowsOfSequencesAlone) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const float dropout : {0.0f, 0.3f}) {
      for (const bool causal : {false, true}) {
        expect_same_as_reference({.queries = {1, 1, 0, 1, 1},
                                  .keys = {13, 1, 4, 600, 70},
                                  .head_width = 20,
                                  .causal = causal,
                                  .type = type,
                                  .dropout = dropout},
                                 type == DType::f32 ? 3e-5 : 1.5e-2);
      }
    }
  }
}

TEST(Attention, MatchesTheReferenceOnLongSequences) {
  expect_same_as_reference({.queries = {1030, 1, 600}, .heads = 1, .kv_heads = 1, .head_width = 8}, 2e-5);
}

TEST(Attention, MatchesTheReferenceOnColumnsOfAJointMatrix) {
  expect_same_as_reference({.queries = {50, 3}, .heads = 4, .kv_heads = 2, .joint = true}, 2e-5);
}

TEST(Attention, MatchesTheReferenceWithDropout) {
  expect_same_as_reference({.queries = {1, 60, 300, 5}, .head_width = 16, .dropout = 0.3f}, 3e-5);
}

TEST(Attention, MatchesTheReferenceInBf16) {
  expect_same_as_reference({.queries = {1, 60, 300, 5}, .head_width = 64, .type = DType::bf16}, 1.5e-2);
  expect_same_as_reference({.queries = {50, 3},
                            .heads = 4,
                            .kv_heads = 2,
                            .head_width = 32,
                            .type = DType::bf16,
                            .dropout = 0.2f,
                            .joint = true},
                           1.5e-2);
}

TEST(Attention, MatchesTheReferenceInBf16ForEveryShape) {
  constexpr double kTolerance = 1.5e-2;
  // Several blocks of keys, queries that are the last of them, grouped heads.
  expect_same_as_reference({.queries = {1, 1, 5, 200, 33},
                            .keys = {1, 300, 140, 333, 33},
                            .heads = 4,
                            .kv_heads = 2,
                            .head_width = 32,
                            .type = DType::bf16},
                           kTolerance);
  // An encoder's keys, seen by all.
  expect_same_as_reference(
      {.queries = {10, 140, 3, 0}, .keys = {133, 2, 100, 5}, .head_width = 64, .causal = false, .type = DType::bf16},
      kTolerance);
  // Queries and keys that see nothing of each other.
  expect_same_as_reference({.queries = {70, 5, 4}, .keys = {10, 2, 0}, .head_width = 64, .type = DType::bf16},
                           kTolerance);
  // Widths that fill no tile.
  for (const int64_t width : {8, 20, 40, 80}) {
    SCOPED_TRACE(width);
    expect_same_as_reference({.queries = {1, 40, 6}, .head_width = width, .type = DType::bf16}, kTolerance);
  }
  expect_same_as_reference({.queries = {1030, 600}, .heads = 1, .kv_heads = 1, .head_width = 8, .type = DType::bf16},
                           kTolerance);
}

TEST(Attention, KeepsLargeScoresFinite) {
  const Problem problem{.queries = {40, 270}, .head_width = 16};
  Attention expected(problem), got(problem);
  for (Attention* a : {&expected, &got}) {
    for (int64_t r = 0; r < a->rows(); ++r) {
      for (int64_t c = 0; c < a->q().cols(); ++c) a->q().set(r, c, 60 * a->q().get(r, c));
    }
  }
  expected.run_reference();
  for_each_isa([&](Isa) {
    got.run_cpu();
    expect_close(got.y, expected.y, 2e-4, "y");
    expect_close(got.dv, expected.dv, 2e-4, "dv");
  });
}

TEST(Attention, AnEmptyBatchDoesNothing) {
  for_each_isa([&](Isa) {
    Attention none({.queries = {}});
    none.run_cpu();
    Attention empty_sequences({.queries = {0, 3, 0}});
    empty_sequences.run_cpu();
    Attention expected({.queries = {3}});
    expected.run_cpu();
    expect_same_bits(empty_sequences.y, expected.y, "y");
    expect_same_bits(empty_sequences.dq, expected.dq, "dq");
  });
}

TEST(Attention, QueriesThatSeeNoKeyAnswerZero) {
  const Problem problem{.queries = {5, 30, 2}, .keys = {2, 7, 0}, .heads = 2, .kv_heads = 1};
  for_each_isa([&](Isa) {
    Attention a(problem), expected(problem);
    expected.run_reference();
    a.run_cpu();
    for (const int64_t row : {0, 1, 2, 5, 27, 35, 36}) {
      for (int64_t c = 0; c < 32; ++c) {
        ASSERT_EQ(a.y.get(row, c), 0) << row;
        ASSERT_EQ(a.dq.get(row, c), 0) << row;
      }
    }
    expect_close(a.y, expected.y, 2e-5, "y");
    expect_close(a.dq, expected.dq, 2e-5, "dq");
    expect_close(a.dk, expected.dk, 2e-5, "dk");
    expect_close(a.dv, expected.dv, 2e-5, "dv");
  });
}

TEST(Attention, KeyGradientsOfASequenceWithoutQueriesAreZero) {
  for_each_isa([&](Isa) {
    Attention a({.queries = {0, 2}, .keys = {3, 2}});
    a.run_cpu();
    for (int64_t r = 0; r < 3; ++r) ASSERT_EQ(a.dk.get(r, 0), 0);
    ASSERT_NE(a.dk.get(3, 0), 0);
  });
}

TEST(Attention, LeavesRowsOfNoSequenceAlone) {
  for_each_isa([&](Isa) {
    Attention a({.queries = {4}, .keys = {9}, .causal = false});
    AttentionBackward op = a.backward_op();
    const int32_t begin = 2, end = 6;
    op.forward.k_begin = &begin;
    op.forward.k_end = &end;
    const float before = a.dk.get(6, 3);
    cpu::attention_forward(op.forward);
    cpu::attention_backward(op);
    EXPECT_EQ(a.dk.get(6, 3), before);
    EXPECT_NE(a.dk.get(5, 3), Attention({.queries = {4}, .keys = {9}}).dk.get(5, 3));
  });
}

// Rows `first` .. of the packed batch against a batch of one sequence with the same content.
void expect_packed_is_separate(Problem problem) {
  for_each_isa([&](Isa) {
    Attention packed(problem);
    packed.run_cpu();
    int64_t first = 0;
    for (size_t number = 0; number < problem.queries.size(); ++number) {
      const int length = problem.queries[number];
      Problem one = problem;
      one.queries = {length};
      Attention alone(one);
      const auto copy = [&](const Matrix& from, Matrix& to) {
        for (int64_t r = 0; r < to.rows(); ++r) {
          for (int64_t c = 0; c < to.cols(); ++c) to.set(r, c, from.get(first + r, c));
        }
      };
      copy(packed.q(), alone.q());
      copy(packed.k(), alone.k());
      copy(packed.v(), alone.v());
      copy(packed.dy(), alone.dy());
      copy(packed.dentropy, alone.dentropy);
      // The sequence keeps the number it has in the step.
      const std::vector<int32_t> sequence(static_cast<size_t>(length), static_cast<int32_t>(number));
      AttentionForward forward = alone.forward_op();
      forward.queries.sequence = sequence.data();
      cpu::attention_forward(forward);
      AttentionBackward backward = alone.backward_op();
      backward.forward = forward;
      cpu::attention_backward(backward);
      for (int64_t r = 0; r < length; ++r) {
        for (int64_t c = 0; c < packed.y.cols(); ++c) {
          ASSERT_EQ(packed.y.get(first + r, c), alone.y.get(r, c)) << length << " row " << r;
          ASSERT_EQ(packed.dq.get(first + r, c), alone.dq.get(r, c)) << length << " row " << r;
        }
        ASSERT_EQ(packed.entropy.get(first + r, 0), alone.entropy.get(r, 0)) << length << " row " << r;
        for (int64_t c = 0; c < packed.dk.cols(); ++c) {
          ASSERT_EQ(packed.dk.get(first + r, c), alone.dk.get(r, c)) << length << " row " << r;
          ASSERT_EQ(packed.dv.get(first + r, c), alone.dv.get(r, c)) << length << " row " << r;
        }
      }
      first += length;
    }
  });
}

TEST(Attention, PackedSequencesGiveTheBitsOfSeparateOnes) {
  const std::vector<int> lengths = {1, 40, 3, 300, 17};
  for (const float dropout : {0.0f, 0.3f}) {
    expect_packed_is_separate({.queries = lengths, .heads = 9, .kv_heads = 9, .head_width = 2, .dropout = dropout});
    expect_packed_is_separate(
        {.queries = lengths, .heads = 8, .kv_heads = 8, .head_width = 8, .dropout = dropout, .has_entropy = true});
  }
  expect_packed_is_separate({.queries = {1, 40, 3, 300, 17}, .heads = 4, .kv_heads = 2});
  expect_packed_is_separate({.queries = {1, 40, 3, 300, 17}, .heads = 4, .kv_heads = 2, .dropout = 0.5f});
  expect_packed_is_separate(
      {.queries = {1, 40, 3, 300}, .heads = 2, .kv_heads = 2, .head_width = 64, .type = DType::bf16});
}

TEST(Attention, AnyNumberOfThreadsGivesTheSameBits) {
  const int threads = thread_pool().size();
  const std::vector<int> pools = testing::kSanitized ? std::vector{3} : std::vector{2, 3, 7};
  for (const DType type : {DType::f32, DType::bf16}) {
    // 580 is cut in another way for each thread pool.
    const Problem problem{.queries = {580, 3, 90}, .heads = 2, .kv_heads = 1, .type = type, .dropout = 0.1f};
    for_each_isa([&](Isa) {
      Runtime::current().set_threads(1);
      Attention one(problem);
      one.run_cpu();
      for (const int pool : pools) {
        Runtime::current().set_threads(pool);
        Attention many(problem);
        many.run_cpu();
        expect_same_bits(many.y, one.y, "y");
        expect_same_bits(many.log_sum_exp, one.log_sum_exp, "log_sum_exp");
        expect_same_bits(many.dq, one.dq, "dq");
        expect_same_bits(many.dk, one.dk, "dk");
        expect_same_bits(many.dv, one.dv, "dv");
      }
    });
  }
  Runtime::current().set_threads(threads);
}

TEST(Attention, DropsTheShareAskedForAndKeepsTheMean) {
  // With v = 1 and equal scores, y is the kept share of the probabilities, scaled: 1 on average.
  const Problem problem{
      .queries = {400}, .heads = 2, .kv_heads = 2, .head_width = 16, .causal = false, .dropout = 0.25f};
  for_each_isa([&](Isa) {
    Attention a(problem);
    for (int64_t r = 0; r < 400; ++r) {
      for (int64_t c = 0; c < 32; ++c) {
        a.q().set(r, c, 0);
        a.v().set(r, c, 1);
      }
    }
    cpu::attention_forward(a.forward_op());
    double mean = 0, square = 0;
    for (int64_t r = 0; r < 400; ++r) {
      for (const int64_t c : {0, 16}) {
        mean += a.y.get(r, c) / 800;
        square += a.y.get(r, c) * a.y.get(r, c) / 800;
      }
    }
    // The share kept of 400 keys has deviation sqrt(0.25 * 0.75 / 400) = 0.0217, and y is that over 0.75.
    EXPECT_NEAR(mean, 1, 0.004);
    EXPECT_NEAR(std::sqrt(square - mean * mean), 0.0217 / 0.75, 0.003);
    EXPECT_NE(a.y.get(0, 0), a.y.get(0, 16)) << "heads draw apart";
    EXPECT_NE(a.y.get(0, 0), a.y.get(1, 0)) << "queries draw apart";
  });
}

TEST(Attention, GenerationFromACacheContinuesTheSequence) {
  // The last query alone, against the keys of all, answers what it answers in the whole sequence.
  for_each_isa([&](Isa) {
    const Problem whole{.queries = {70}, .heads = 4, .kv_heads = 2};
    Attention all(whole);
    cpu::attention_forward(all.forward_op());
    AttentionForward op = all.forward_op();
    const Ragged one({1});
    Matrix y(1, 64);
    op.q = op.q.row_range(69, 1);
    op.y = y;
    op.queries = one.view();
    op.log_sum_exp = {};
    cpu::attention_forward(op);
    for (int64_t c = 0; c < 64; ++c) ASSERT_NEAR(y.get(0, c), all.y.get(69, c), 1e-5);
  });
}

}  // namespace
}  // namespace brisk
