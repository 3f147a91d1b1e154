#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/threads.h"
#include "ops/linear_cross_entropy.h"
#include "ops/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;

struct Case {
  int64_t rows, width, vocabulary;
  DType type = DType::f32;
  float label_smoothing = 0;
  double logit_scale = 1;
  int64_t scratch_rows = 0;  // what the scratch is made for; 0: rows
};

struct Setting {
  explicit Setting(const Case& c, bool gradient = true)
      : x(c.rows, c.width, c.type, 1, c.logit_scale),
        weight(c.vocabulary, c.width, c.type, 2, 1 / std::sqrt(static_cast<double>(c.width)), c.width + 8),
        loss(c.rows, 1),
        log_sum_exp(c.rows, 1),
        argmax(c.rows, 1, DType::i32, 1, 0),
        sums(1, 3),
        dx(c.rows, c.width, c.type, 3),
        dweight(c.vocabulary, c.width, DType::f32, 4),
        scratch(1,
                linear_cross_entropy_scratch(c.scratch_rows == 0 ? c.rows : c.scratch_rows, c.width, c.vocabulary,
                                             c.type, gradient) /
                    4,
                DType::f32, 5, 0) {
    for (int64_t i = 0; i < c.rows; ++i) {
      targets.push_back(
          i % 5 == 3 ? -1
                     : static_cast<int32_t>(mix64(static_cast<uint64_t>(i)) % static_cast<uint64_t>(c.vocabulary)));
    }
    op.x = x;
    op.weight = weight;
    op.targets = targets.data();
    op.label_smoothing = c.label_smoothing;
    op.scale = 0.125f;
    op.loss = loss;
    op.log_sum_exp = log_sum_exp;
    op.argmax = argmax;
    op.sums = sums;
    op.scratch = scratch;
    if (gradient) {
      op.dx = dx;
      op.dweight = dweight;
    }
  }
  std::vector<int32_t> targets;
  Matrix x, weight, loss, log_sum_exp, argmax, sums, dx, dweight, scratch;
  LinearCrossEntropy op;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType type : {DType::f32, DType::bf16}) {
    all.push_back({37, 24, 100, type});
    all.push_back({1, 1, 1, type});
    all.push_back({50, 33, 1025, type, 0.1f});
    all.push_back({100, 16, 517, type, 0, 1, 40});  // three chunks with gradient, and a short last one
    all.push_back({20, 16, 3000, type, 0.2f, 30});  // logits up to hundreds: e^x alone would overflow
  }
  return all;
}

std::string name_of(const Case& c) {
  return fmt::format("{} rows, {} wide, {} tokens, {}, smoothing {}", c.rows, c.width, c.vocabulary, dtype_name(c.type),
                     c.label_smoothing);
}

void expect_same_losses(const Setting& fast, const Setting& plain) {
  expect_close(fast.loss, plain.loss, 2e-6, "loss");
  expect_close(fast.log_sum_exp, plain.log_sum_exp, 2e-6, "log_sum_exp");
  expect_close(fast.argmax, plain.argmax, 0, "argmax");
  expect_close(fast.sums, plain.sums, 2e-6, "sums");
}

TEST(LinearCrossEntropy, AgreesWithTheReference) {
  for_each_isa([&](Isa) {
    for (const Case& c : cases()) {
      for (const bool adds : {false, true}) {
        SCOPED_TRACE(name_of(c));
        Setting fast(c), plain(c);
        fast.op.dweight_adds = plain.op.dweight_adds = adds;
        cpu::linear_cross_entropy(fast.op);
        ref::linear_cross_entropy(plain.op);
        expect_same_losses(fast, plain);
        const double tolerance = c.type == DType::bf16 ? 5e-3
                                 : c.logit_scale > 1   ? 1e-5
                                                       : 2e-6;  // large logits have larger errors
        expect_close(fast.dx, plain.dx, tolerance, "dx");
        expect_close(fast.dweight, plain.dweight, tolerance, "dweight");
      }
    }
  });
}

TEST(LinearCrossEntropy, WithoutGradientGivesTheSameLossesFromBlocks) {
  for_each_isa([&](Isa) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(name_of(c));
      Setting fast(c, false), plain(c);
      cpu::linear_cross_entropy(fast.op);
      ref::linear_cross_entropy(plain.op);
      expect_same_losses(fast, plain);
      expect_close(fast.dweight, Matrix(c.vocabulary, c.width, DType::f32, 4), 0, "dweight, which nobody asked for");
    }
  });
}

TEST(LinearCrossEntropy, NeedsScratchOfChunksNotOfAllLogits) {
  EXPECT_LE(linear_cross_entropy_scratch(8192, 512, 50304, DType::f32, true), 105 << 20);
  EXPECT_LE(linear_cross_entropy_scratch(8192, 512, 50304, DType::f32, false), 8 << 20);
}

TEST(LinearCrossEntropy, OfNoRowsHasNoLossAndNoGradient) {
  for_each_isa([&](Isa) {
    Setting s({0, 8, 20});
    cpu::linear_cross_entropy(s.op);
    expect_close(s.sums, Matrix(1, 3, DType::f32, 1, 0), 0, "sums");
    expect_close(s.dweight, Matrix(20, 8, DType::f32, 1, 0), 0, "dweight");
  });
}

TEST(LinearCrossEntropy, GivesOneThreadsBitsWithTwo) {
  const int threads = Team::instance().size();
  const Case c{90, 40, 700, DType::f32, 0.1f};
  Setting one(c), two(c);
  Team::set_size(1);
  cpu::linear_cross_entropy(one.op);
  Team::set_size(2);
  cpu::linear_cross_entropy(two.op);
  Team::set_size(threads);
  expect_close(one.loss, two.loss, 0, "loss");
  expect_close(one.dx, two.dx, 0, "dx");
  expect_close(one.dweight, two.dweight, 0, "dweight");
}

// The reference itself: central differences of scale * sum of losses, whose f32 rows are accurate to about 1e-7.
TEST(LinearCrossEntropyReference, HasTheGradientsOfFiniteDifferences) {
  for (const float smoothing : {0.0f, 0.1f}) {
    Setting s({7, 6, 20, DType::f32, smoothing});
    Setting center({7, 6, 20, DType::f32, smoothing});
    ref::linear_cross_entropy(center.op);
    const auto objective = [&] {
      ref::linear_cross_entropy(s.op);
      double sum = 0;
      for (int64_t i = 0; i < 7; ++i) sum += double{s.op.scale} * s.loss.get(i, 0);
      return sum;
    };
    const auto check = [&](Matrix& values, const Matrix& gradient, const char* what) {
      for (int64_t i = 0; i < values.rows(); ++i) {
        for (int64_t j = 0; j < values.cols(); ++j) {
          const float value = values.get(i, j), step = 1e-2f;
          values.set(i, j, value + step);
          const double up = objective();
          values.set(i, j, value - step);
          const double down = objective();
          values.set(i, j, value);
          EXPECT_NEAR((up - down) / (2 * step), gradient.get(i, j), 1e-4) << what << " at " << i << ", " << j;
        }
      }
    };
    check(s.x, center.dx, "dx");
    check(s.weight, center.dweight, "dweight");
  }
}

}  // namespace
}  // namespace brisk
