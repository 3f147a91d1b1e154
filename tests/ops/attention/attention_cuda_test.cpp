#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/cuda/attention_cudnn_cuda.h"
#include "ops/attention/cuda/attention_variants_cuda.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::GpuNumbers;
using testing::GpuRows;
using testing::OnGpu;
using testing::Side;

using CudaAttention = OnGpu;
using Variant = cuda::AttentionVariant;

struct Problem {
  std::vector<int> queries;
  std::vector<int> keys = {};  // none: self-attention
  int64_t heads = 2, kv_heads = 2, head_width = 64;
  bool causal = true;
  DType type = DType::f32;
  float dropout = 0;
  int spare = 0;  // rows of no sequence
  bool by_cudnn = false;
  bool has_entropy = false;
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
        entropy(rows_.rows(), 1, DType::f32, 0, 0),
        dentropy(rows_.rows(), 1, DType::f32, 4),
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
    const RowSet keys = problem_.keys.empty() ? op.queries : key_rows_.at(side);
    op.k_begin = keys.starts;
    op.k_end = keys.starts + 1;
    op.longest_keys = keys.longest;
    op.dropout = {problem_.dropout, 1234};
    op.y = y.at(side);
    op.log_sum_exp = log_sum_exp.at(side);
    if (problem_.has_entropy) op.entropy = entropy.at(side);
    return op;
  }
  AttentionBackward backward(Side side) const {
    return {forward(side),
            dy_.at(side),
            dq.at(side),
            dkv.at(side).columns(0, k_columns_),
            dkv.at(side).columns(k_columns_, k_columns_),
            problem_.has_entropy ? dentropy.at(side) : Tensor{}};
  }
  // From now on the sequences on the GPU are those of another with as many rows.
  void take_lengths(const Attention& other) {
    const int64_t bytes = (static_cast<int64_t>(problem_.queries.size()) + 1) * 4;
    std::vector<int32_t> starts(problem_.queries.size() + 1);
    cuda_device().copy_out(starts.data(), other.rows_.at(Side::gpu).starts, bytes);
    cuda_device().copy_in(const_cast<int32_t*>(rows_.at(Side::gpu).starts), starts.data(), bytes);
  }
  // Every query with every key: about -128.
  void set_scores_far_below_zero() {
    const float value = std::sqrt(128 / std::sqrt(static_cast<float>(problem_.head_width)));
    const auto shift = [](GpuMatrix& m, int64_t columns, float by) {
      for (int64_t r = 0; r < m.host().rows(); ++r) {
        for (int64_t c = 0; c < columns; ++c) m.host().set(r, c, m.host().get(r, c) * 0.1f + by);
      }
      m.take_reference();
    };
    shift(q_, q_columns_, value);
    shift(kv_, k_columns_, -value);
  }
  // What the reference leaves alone is 0 on the GPU.
  void clear_spare_rows() {
    const auto clear = [&](GpuMatrix& m) {
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
  GpuRows rows_, key_rows_;
  int64_t q_columns_, k_columns_;
  GpuMatrix q_, kv_, dy_;

 public:
  GpuMatrix y, log_sum_exp, entropy, dentropy, dq, dkv;
};

void expect_same_bits(Attention& a, Attention& b) {
  for (auto [first, second] : {std::pair{&a.y, &b.y}, {&a.dq, &b.dq}, {&a.dkv, &b.dkv}}) {
    const testing::Matrix &x = first->gpu(), &y = second->gpu();
    for (int64_t r = 0; r < x.rows(); ++r) {
      for (int64_t c = 0; c < x.cols(); ++c) ASSERT_EQ(x.get(r, c), y.get(r, c)) << r << ", " << c;
    }
  }
}

void expect_sums_close(Attention& a, const Problem& problem, double tolerance) {
  const testing::Matrix& got = a.log_sum_exp.gpu();
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
}

// Every variant that supports the operands; those of cuDNN, whose plans take long to make, where `problem` wants them.
void expect_as_reference(const Problem& problem) {
  SCOPED_TRACE(problem.head_width);
  const double tolerance = problem.type == DType::f32 ? 3e-5 : 1.5e-2;
  const auto is_tried = [&](Variant variant) {
    return problem.by_cudnn || (variant != Variant::cudnn && variant != Variant::cudnn_unordered);
  };
  Attention a(problem);
  ref::attention_forward(a.forward(Side::host));
  cuda::attention_forward(a.forward(Side::gpu));
  a.clear_spare_rows();
  a.y.expect_close(tolerance, "y");
  expect_sums_close(a, problem, tolerance);
  for (const Variant variant : cuda::every_attention_variant()) {
    SCOPED_TRACE(cuda::name_of(variant));
    a.y.spoil();
    a.log_sum_exp.spoil();
    if (!is_tried(variant) || !cuda::attention_forward(a.forward(Side::gpu), variant)) continue;
    a.y.expect_close(tolerance, "y");
    expect_sums_close(a, problem, tolerance);
  }
  // Backward from the reference's y, so that one op's error is not blamed on the other.
  a.y.take_reference();
  a.log_sum_exp.take_reference();
  ref::attention_backward(a.backward(Side::host));
  cuda::attention_backward(a.backward(Side::gpu));
  a.clear_spare_rows();
  a.dq.expect_close(tolerance, "dq");
  a.dkv.expect_close(tolerance, "dk and dv");
  for (const Variant variant : cuda::every_attention_variant()) {
    SCOPED_TRACE(cuda::name_of(variant));
    a.dq.spoil();
    a.dkv.spoil();
    if (!is_tried(variant) || !cuda::attention_backward(a.backward(Side::gpu), variant)) continue;
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

TEST_F(CudaAttention, TellsTheEntropyOfItsWeightsAsTheReference) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const int64_t width : {2, 4, 8}) {
      for (const bool causal : {true, false}) {
        for (const float dropout : {0.0f, 0.3f}) {
          SCOPED_TRACE(width);
          const Problem problem{.queries = {1, 7, 64, 2, 130, 16, 3, 65},
                                .heads = 8,
                                .kv_heads = 8,
                                .head_width = width,
                                .causal = causal,
                                .type = type,
                                .dropout = dropout,
                                .spare = 5,
                                .has_entropy = true};
          const double tolerance = type == DType::f32 ? 5e-5 : 1.5e-2;
          Attention a(problem);
          ref::attention_forward(a.forward(Side::host));
          cuda::attention_forward(a.forward(Side::gpu));
          a.clear_spare_rows();
          a.y.expect_close(tolerance, "y");
          a.entropy.expect_close(tolerance, "entropy");
          expect_sums_close(a, problem, tolerance);
          a.y.take_reference();
          a.log_sum_exp.take_reference();
          ref::attention_backward(a.backward(Side::host));
          cuda::attention_backward(a.backward(Side::gpu));
          a.clear_spare_rows();
          a.dq.expect_close(tolerance, "dq");
          a.dkv.expect_close(tolerance, "dk and dv");
        }
      }
    }
  }
}

TEST_F(CudaAttention, IsTheReferencesOnRaggedSequences) {
  for (const bool causal : {true, false}) {
    expect_as_reference_in_both_types({.queries = {1, 7, 64, 2, 130, 16, 3, 65}, .causal = causal});
  }
}

TEST_F(CudaAttention, IsTheReferencesForEveryHeadWidth) {
  for (const int64_t width : {1, 2, 8, 16, 20, 24, 32, 48, 64, 80, 96, 100, 112, 128, 160, 256}) {
    expect_as_reference_in_both_types({.queries = {1, 70, 6}, .head_width = width});
  }
}

TEST_F(CudaAttention, IsTheReferencesWithNarrowHeads) {
  for (const int64_t width : {2, 4, 8}) {
    for (const bool causal : {true, false}) {
      for (const float dropout : {0.0f, 0.3f}) {
        expect_as_reference_in_both_types({.queries = {1, 7, 0, 64, 2, 130, 16, 3, 65, 300},
                                           .heads = 4,
                                           .kv_heads = 2,
                                           .head_width = width,
                                           .causal = causal,
                                           .dropout = dropout,
                                           .spare = 5});
      }
    }
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

// Keys beyond a sequence's end have scores of 0, which is much where all others are far below.
TEST_F(CudaAttention, KeysBeyondASequenceHaveNoWeight) {
  for (const bool causal : {true, false}) {
    const Problem problem{.queries = {5, 70, 129}, .causal = causal, .type = DType::bf16};
    Attention a(problem);
    a.set_scores_far_below_zero();
    ref::attention_forward(a.forward(Side::host));
    ref::attention_backward(a.backward(Side::host));
    for (const Variant variant : cuda::every_attention_variant()) {
      SCOPED_TRACE(cuda::name_of(variant));
      if (variant == Variant::cudnn || variant == Variant::cudnn_unordered) continue;
      a.y.spoil();
      if (cuda::attention_forward(a.forward(Side::gpu), variant)) a.y.expect_close(1.5e-2, "y");
      a.y.take_reference();
      a.log_sum_exp.take_reference();
      a.dq.spoil();
      a.dkv.spoil();
      if (!cuda::attention_backward(a.backward(Side::gpu), variant)) continue;
      a.dq.expect_close(1.5e-2, "dq");
      a.dkv.expect_close(1.5e-2, "dk and dv");
    }
  }
}

class CudnnAttention : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    if (cuda::attention_library_version() == 0) {
      cuda::attention_forward(Attention({.queries = {8}, .type = DType::bf16}).forward(Side::gpu), Variant::cudnn);
      GTEST_SKIP() << "no cuDNN to go by: " << cuda::attention_refusal();
    }
  }
};

// Both directions must be taken: what cuDNN refuses would otherwise pass for a test of it.
void expect_by_cudnn(Problem problem, DType type = DType::bf16) {
  problem.type = type;
  problem.by_cudnn = true;
  Attention a(problem);
  EXPECT_TRUE(cuda::attention_forward(a.forward(Side::gpu), Variant::cudnn)) << cuda::attention_refusal();
  EXPECT_TRUE(cuda::attention_backward(a.backward(Side::gpu), Variant::cudnn)) << cuda::attention_refusal();
  EXPECT_TRUE(cuda::attention_backward(a.backward(Side::gpu), Variant::cudnn_unordered)) << cuda::attention_refusal();
  expect_as_reference(problem);
}

TEST_F(CudnnAttention, TakesSequencesOfTheSameLength) {
  for (const bool causal : {true, false}) {
    expect_by_cudnn({.queries = {128, 128, 128}, .causal = causal});
    expect_by_cudnn({.queries = {384, 384}, .causal = causal});
  }
}

TEST_F(CudnnAttention, TakesLengthsThatAreNoMultipleOfATile) { expect_by_cudnn({.queries = {200, 200, 200}}); }

TEST_F(CudnnAttention, TakesRaggedSequences) {
  for (const bool causal : {true, false}) {
    expect_by_cudnn({.queries = {1, 7, 64, 2, 130, 16, 3, 65}, .causal = causal});
  }
}

TEST_F(CudnnAttention, TakesRowsOfNoSequence) { expect_by_cudnn({.queries = {30, 70}, .spare = 41}); }

TEST_F(CudnnAttention, TakesOtherHeadWidths) {
  for (const int64_t width : {32, 128}) expect_by_cudnn({.queries = {256, 256}, .head_width = width});
}

TEST_F(CudnnAttention, TakesHalfPrecision) {
  expect_by_cudnn({.queries = {256, 256}}, DType::f16);
  expect_by_cudnn({.queries = {90, 1, 9}, .causal = false}, DType::f16);
}

TEST_F(CudnnAttention, TakesGroupedKeyHeads) {
  expect_by_cudnn({.queries = {256, 256}, .heads = 6, .kv_heads = 2});
  expect_by_cudnn({.queries = {90, 1, 9}, .heads = 6, .kv_heads = 2});
}

TEST_F(CudnnAttention, LeavesDropoutAndOtherKeysToBriskItself) {
  for (const Problem& problem :
       {Problem{.queries = {128}, .type = DType::bf16, .dropout = 0.1f},
        Problem{.queries = {1}, .keys = {40}, .type = DType::bf16}, Problem{.queries = {128}, .type = DType::f32}}) {
    Attention a(problem);
    EXPECT_FALSE(cuda::attention_forward(a.forward(Side::gpu), Variant::cudnn));
    EXPECT_FALSE(cuda::attention_backward(a.backward(Side::gpu), Variant::cudnn));
  }
}

TEST_F(CudnnAttention, GivesTheSameBitsEveryTime) {
  const Problem problem{.queries = {512, 512, 512, 512}, .heads = 4, .kv_heads = 4, .type = DType::bf16};
  Attention a(problem), b(problem);
  for (const Attention* run : {&a, &b}) {
    ASSERT_TRUE(cuda::attention_forward(run->forward(Side::gpu), Variant::cudnn)) << cuda::attention_refusal();
    ASSERT_TRUE(cuda::attention_backward(run->backward(Side::gpu), Variant::cudnn)) << cuda::attention_refusal();
  }
  expect_same_bits(a, b);
}

TEST_F(CudnnAttention, IsRecordedInAGraphWithOtherLengthsEachTime) {
  const Problem problem{.queries = {300, 20, 130}, .type = DType::bf16}, other{.queries = {150, 290, 10}};
  Attention a(problem), b({.queries = other.queries, .type = DType::bf16});
  const auto run = [](const Attention& of) {
    ASSERT_TRUE(cuda::attention_forward(of.forward(Side::gpu), Variant::cudnn)) << cuda::attention_refusal();
    ASSERT_TRUE(cuda::attention_backward(of.backward(Side::gpu), Variant::cudnn)) << cuda::attention_refusal();
  };
  run(a);  // plans are made
  const std::unique_ptr<DeviceGraph> graph = cuda_device().record([&] { run(a); });
  a.take_lengths(b);
  graph->run();
  run(b);
  expect_same_bits(a, b);
}

TEST_F(CudaAttention, GivesTheSameBitsEveryTime) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    const Problem problem{.queries = {200, 31, 300}, .heads = 4, .kv_heads = 2, .type = type};
    Attention a(problem), b(problem);
    for (const Attention* run : {&a, &b}) {
      cuda::attention_forward(run->forward(Side::gpu));
      cuda::attention_backward(run->backward(Side::gpu));
    }
    expect_same_bits(a, b);
  }
}

}  // namespace
}  // namespace brisk
