#include "ops/loss/linear_cross_entropy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/runtime.h"
#include "support/numeric.h"
#include "support/sanitized.h"

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
  bool bias = false, weights = false;
  float soft_weight = 0, temperature = 1;  // of soft targets; 0: none
};

struct Setting {
  explicit Setting(const Case& c, bool gradient = true)
      : x(c.rows, c.width, c.type, 1, c.logit_scale),
        weight(c.vocabulary, c.width, c.type, 2, 1 / std::sqrt(static_cast<double>(c.width)), c.width + 8),
        loss(c.rows, 1),
        argmax(c.rows, 1, DType::i32, 1, 0),
        sums(1, 4),
        dx(c.rows, c.width, c.type, 3),
        dweight(c.vocabulary, c.width, DType::f32, 4),
        bias(1, c.vocabulary, DType::f32, 6),
        dbias(1, c.vocabulary, DType::f32, 7),
        scratch(1,
                linear_cross_entropy_scratch(c.scratch_rows == 0 ? c.rows : c.scratch_rows, c.width, c.vocabulary,
                                             c.type, gradient) /
                    4,
                DType::f32, 5, 0) {
    for (int64_t i = 0; i < c.rows; ++i) {
      targets.push_back(
          i % 5 == 3 ? -1
                     : static_cast<int32_t>(mix64(static_cast<uint64_t>(i)) % static_cast<uint64_t>(c.vocabulary)));
      weights.push_back(0.25f * static_cast<float>(i % 4));
    }
    op.x = x;
    op.weight = weight;
    op.targets = targets.data();
    if (c.bias) op.bias = bias;
    if (c.weights) op.weights = weights.data();
    op.label_smoothing = c.label_smoothing;
    op.scale = 0.125f;
    op.loss = loss;
    op.argmax = argmax;
    op.sums = sums;
    op.scratch = scratch;
    for (int64_t i = 0; i < c.rows && c.soft_weight > 0; ++i) {
      // Shares that add up to 1, some of them 0.
      double total = 0;
      std::vector<double> shares;
      for (int64_t v = 0; v < c.vocabulary; ++v) {
        const double draw = random_uniform(random_key({9, static_cast<uint64_t>(i)}), static_cast<uint64_t>(v));
        shares.push_back(draw < 0.2 && v > 0 ? 0 : draw * draw);
        total += shares.back();
      }
      for (const double share : shares) soft_targets.push_back(static_cast<float>(share / total));
    }
    if (c.soft_weight > 0) {
      op.soft_targets = soft_targets.data();
      op.soft_weight = c.soft_weight;
      op.temperature = c.temperature;
    }
    if (gradient) {
      op.dx = dx;
      op.dweight = dweight;
      if (c.bias) op.dbias = dbias;
    }
  }
  std::vector<int32_t> targets;
  std::vector<float> weights, soft_targets;
  Matrix x, weight, loss, argmax, sums, dx, dweight, bias, dbias, scratch;
  LinearCrossEntropy op;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType type : {DType::f32, DType::bf16}) {
    all.push_back({37, 24, 100, type});
    all.push_back({1, 1, 1, type});
    all.push_back({50, 33, 1025, type, 0.1f});
    all.push_back({100, 16, 517, type, 0, 1, 40});  // three chunks with gradient, and a short last one
    all.push_back({100, 16, 517, type, 0.1f, 1, 40, true, true});
    all.push_back({70, 40, 2100, type, 0, 1, 0, true, false});
    for (const int64_t classes : {2, 3, 10, 17}) {  // a classifier: a row a text
      all.push_back({33, 48, classes, type, classes == 3 ? 0.1f : 0, 1, 0, true, classes > 2});
      all.push_back({1, 48, classes, type, 0, 1, 0, true, true});
    }
    all.push_back({20, 16, 3000, type, 0.2f, 30});  // logits up to hundreds: e^x alone would overflow
  }
  return all;
}

// What a student learns from a teacher.
std::vector<Case> soft_cases() {
  std::vector<Case> all;
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const int64_t classes : {2, 3, 40}) {
      all.push_back({33, 48, classes, type, 0, 1, 0, true, false, 0.5f, 2});
      all.push_back({33, 48, classes, type, 0.1f, 1, 0, true, true, 0.3f, 4});
      all.push_back({33, 48, classes, type, 0, 1, 0, true, true, 1, 0.5f});
    }
    all.push_back({100, 16, 517, type, 0, 10, 40, true, true, 0.9f, 3});  // three chunks, logits of tens
  }
  return all;
}

std::string name_of(const Case& c) {
  return fmt::format("{} rows, {} wide, {} tokens, {}, smoothing {}, soft {} at {}", c.rows, c.width, c.vocabulary,
                     dtype_name(c.type), c.label_smoothing, c.soft_weight, c.temperature);
}

void expect_same_losses(const Setting& fast, const Setting& plain) {
  expect_close(fast.loss, plain.loss, 2e-6, "loss");
  expect_close(fast.argmax, plain.argmax, 0, "argmax");
  expect_close(fast.sums, plain.sums, 2e-6, "sums");
}

TEST(LinearCrossEntropy, AgreesWithTheReference) {
  std::vector<Case> all = cases();
  for (const Case& c : soft_cases()) all.push_back(c);
  for (const Case& c : all) {
    for (const bool adds : {false, true}) {
      if (testing::kSanitized && !adds) continue;
      SCOPED_TRACE(name_of(c));
      Setting plain(c);
      plain.op.dweight_adds = plain.op.dbias_adds = adds;
      ref::linear_cross_entropy(plain.op);
      for_each_isa([&](Isa) {
        Setting fast(c);
        fast.op.dweight_adds = fast.op.dbias_adds = adds;
        cpu::linear_cross_entropy(fast.op);
        expect_same_losses(fast, plain);
        const double tolerance = c.type == DType::bf16 ? 5e-3
                                 : c.logit_scale > 1   ? 1e-5
                                                       : 2e-6;  // large logits have larger errors
        expect_close(fast.dx, plain.dx, tolerance, "dx");
        expect_close(fast.dweight, plain.dweight, tolerance, "dweight");
        expect_close(fast.dbias, plain.dbias, tolerance, "dbias");
      });
    }
  }
}

TEST(LinearCrossEntropy, WithoutGradientGivesTheSameLossesFromBlocks) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(name_of(c));
    Setting plain(c);
    ref::linear_cross_entropy(plain.op);
    for_each_isa([&](Isa) {
      Setting fast(c, false);
      cpu::linear_cross_entropy(fast.op);
      expect_same_losses(fast, plain);
      expect_close(fast.dweight, Matrix(c.vocabulary, c.width, DType::f32, 4), 0, "dweight, which nobody asked for");
    });
  }
}

TEST(LinearCrossEntropy, NeedsScratchOfChunksNotOfAllLogits) {
  EXPECT_LE(linear_cross_entropy_scratch(8192, 512, 50304, DType::f32, true), 105 << 20);
  EXPECT_LE(linear_cross_entropy_scratch(8192, 512, 50304, DType::f32, false), 8 << 20);
}

TEST(LinearCrossEntropy, OfNoRowsHasNoLossAndNoGradient) {
  for_each_isa([&](Isa) {
    Setting s({0, 8, 20, DType::f32, 0, 1, 0, true, true});
    cpu::linear_cross_entropy(s.op);
    expect_close(s.sums, Matrix(1, 4, DType::f32, 1, 0), 0, "sums");
    expect_close(s.dweight, Matrix(20, 8, DType::f32, 1, 0), 0, "dweight");
    expect_close(s.dbias, Matrix(1, 20, DType::f32, 1, 0), 0, "dbias");
  });
}

TEST(LinearCrossEntropy, GivesOneThreadsBitsWithTwo) {
  const int threads = thread_pool().size();
  const Case c{90, 40, 700, DType::f32, 0.1f, 1, 0, true, true};
  Setting one(c), two(c);
  Runtime::current().set_threads(1);
  cpu::linear_cross_entropy(one.op);
  Runtime::current().set_threads(2);
  cpu::linear_cross_entropy(two.op);
  Runtime::current().set_threads(threads);
  expect_close(one.loss, two.loss, 0, "loss");
  expect_close(one.dx, two.dx, 0, "dx");
  expect_close(one.dweight, two.dweight, 0, "dweight");
  expect_close(one.dbias, two.dbias, 0, "dbias");
}

TEST(LinearCrossEntropy, SumsAreWeightedAndCountsAreNot) {
  for_each_isa([&](Isa) {
    Setting s({20, 8, 5, DType::f32, 0, 1, 0, true, true});
    cpu::linear_cross_entropy(s.op);
    double loss = 0, weight = 0, valid = 0;
    for (int64_t i = 0; i < 20; ++i) {
      if (s.targets[static_cast<size_t>(i)] < 0) continue;
      loss += s.weights[static_cast<size_t>(i)] * double{s.loss.get(i, 0)};
      weight += s.weights[static_cast<size_t>(i)];
      valid += 1;
    }
    EXPECT_NEAR(s.sums.get(0, 0), loss, 1e-5);
    EXPECT_EQ(s.sums.get(0, 2), valid);
    EXPECT_FLOAT_EQ(s.sums.get(0, 3), static_cast<float>(weight));
  });
}

// alpha T^2 kl_div(log_softmax(z / T), softmax(t / T), "batchmean") + (1 - alpha) cross_entropy(z, y) in PyTorch 2, in
// double, with alpha 0.7, T 2 and the teacher's logits t.
TEST(LinearCrossEntropy, HasTheDistillationLossOfPyTorch) {
  const float x[3][2] = {{0.5f, -1}, {2, 0.25f}, {-0.75f, 1.5f}};
  const float w[3][2] = {{1, -0.5f}, {0.25f, 2}, {-1.5f, 0.75f}};
  const float b[3] = {0.1f, -0.2f, 0.3f};
  const double t[3][3] = {{2, 0.5, -1}, {0, 3, 1}, {-2, 1, 1.5}};
  for (const bool reference : {true, false}) {
    Setting s({3, 2, 3, DType::f32, 0, 1, 0, true, false, 0.7f, 2});
    s.targets = {0, 2, 1};
    s.op.targets = s.targets.data();
    s.op.scale = 1.0f / 3;
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        s.x.set(i, j, x[i][j]);
        s.weight.set(i, j, w[i][j]);
      }
      s.bias.set(0, i, b[i]);
      double total = 0;
      for (int64_t v = 0; v < 3; ++v) total += std::exp(t[i][v] / 2);
      for (int64_t v = 0; v < 3; ++v)
        s.soft_targets[static_cast<size_t>(3 * i + v)] = static_cast<float>(std::exp(t[i][v] / 2) / total);
    }
    (reference ? ref::linear_cross_entropy : cpu::linear_cross_entropy)(s.op);
    EXPECT_NEAR(s.sums.get(0, 0) / 3, 1.100505765, 1e-6);
    const double dx[3][2] = {{-0.063548324, -0.103445765}, {0.528567132, -0.506241225}, {-0.050069022, -0.003057274}};
    const double dw[3][2] = {{0.59990334, 0.037498167}, {-0.249626561, 0.015337805}, {-0.350276779, -0.052835971}};
    const double db[3] = {0.299480413, -0.190714998, -0.108765415};
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        EXPECT_NEAR(s.dx.get(i, j), dx[i][j], 1e-6);
        EXPECT_NEAR(s.dweight.get(i, j), dw[i][j], 1e-6);
      }
      EXPECT_NEAR(s.dbias.get(0, i), db[i], 1e-6);
    }
  }
}

// The reference itself: central differences of scale * sum of losses, whose f32 rows are accurate to about 1e-7.
TEST(LinearCrossEntropyReference, HasTheGradientsOfFiniteDifferences) {
  for (const Case& c : {Case{7, 6, 20, DType::f32, 0, 1, 0, true, true},
                        {7, 6, 20, DType::f32, 0.1f, 1, 0, true, true},
                        {7, 6, 20, DType::f32, 0.1f, 1, 0, true, true, 0.6f, 2.5f}}) {
    Setting s(c), center(c);
    ref::linear_cross_entropy(center.op);
    const auto objective = [&] {
      ref::linear_cross_entropy(s.op);
      double sum = 0;
      for (int64_t i = 0; i < 7; ++i) sum += double{s.op.scale} * s.weights[static_cast<size_t>(i)] * s.loss.get(i, 0);
      return sum;
    };
    const auto check = [&](Matrix& values, const Matrix& gradient, const char* what) {
      for (int64_t i = 0; i < values.rows(); ++i) {
        for (int64_t j = 0; j < values.cols(); ++j) {
          EXPECT_NEAR(testing::slope_of(values, i, j, 1e-2f, objective), gradient.get(i, j), 1e-4)
              << what << " at " << i << ", " << j;
        }
      }
    };
    check(s.x, center.dx, "dx");
    check(s.weight, center.dweight, "dweight");
    check(s.bias, center.dbias, "dbias");
  }
}

}  // namespace
}  // namespace brisk
