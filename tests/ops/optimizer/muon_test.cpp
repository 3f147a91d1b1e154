#include "ops/optimizer/muon.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/runtime.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;

// One matrix with all that Muon keeps of it.
struct Weight {
  Weight(int64_t rows, int64_t cols, uint64_t seed = 1)
      : p(rows, cols, DType::f32, seed),
        gradient(rows, cols, DType::f32, seed + 100, 0.01),
        momentum(rows, cols, DType::f32, seed + 200, 0.01),
        copy(rows, cols, DType::bf16, seed + 300) {}
  MuonMatrix view() const {
    return {p.view().f32(), gradient.view().f32(), momentum.view().f32(), copy.view().bf16(), p.rows(), p.cols()};
  }
  Matrix p, gradient, momentum, copy;
};

// Several of them, and their update.
struct Weights {
  explicit Weights(const std::vector<std::pair<int64_t, int64_t>>& shapes) {
    for (const auto& [rows, cols] : shapes) {
      all.push_back(std::make_unique<Weight>(rows, cols, all.size() + 1));
      views.push_back(all.back()->view());
    }
  }
  MuonUpdate op(Arithmetic arithmetic = Arithmetic::f32) {
    workspace.resize(static_cast<size_t>(cpu::muon_workspace_floats(views)) + 16);
    const uintptr_t aligned = (reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64;
    return {views, reinterpret_cast<float*>(aligned), 0.1f, 0.9f, 0.5f, 0.25f, arithmetic};
  }
  std::vector<std::unique_ptr<Weight>> all;
  std::vector<MuonMatrix> views;
  std::vector<float> workspace;
};

const std::vector<std::pair<int64_t, int64_t>> kShapes = {{48, 48}, {96, 32}, {32, 96}, {7, 5}, {1, 9}, {130, 70}};

// The update made, without decay: (before - after) / rate.
double update_times(const Matrix& before, const Matrix& after, int64_t row, int64_t col) {
  return (before.get(row, col) - after.get(row, col)) / 0.1;
}

TEST(Muon, ReferenceTurnsTheSingularValuesOfADiagonalIntoNearlyOne) {
  Weight weight(3, 3);
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 3; ++c) {
      weight.p.set(r, c, 0);
      weight.momentum.set(r, c, 0);
      weight.gradient.set(r, c, r == c ? static_cast<float>(std::pow(10.0, -r)) : 0.0f);  // 1, 0.1, 0.01
    }
  }
  const MuonMatrix view = weight.view();
  ref::muon_update({.matrices = {&view, 1}, .rate = 0.1f, .momentum = 0.0f});
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 3; ++c) {
      // The quintic leaves 0.68 to 1.13 of what it began with between 0.003 and 1.
      EXPECT_NEAR(weight.p.get(r, c), r == c ? -0.1 : 0.0, r == c ? 0.033 : 1e-6) << r << ", " << c;
    }
  }
}

TEST(Muon, ReferenceKeepsTheMomentumAndLooksAhead) {
  // A row has one singular value: its update is the direction looked at, of length near 1.
  Weight weight(1, 2);
  const float gradient[2] = {3, 0}, momentum[2] = {0, 4};
  for (int64_t c = 0; c < 2; ++c) {
    weight.p.set(0, c, 0);
    weight.gradient.set(0, c, gradient[c]);
    weight.momentum.set(0, c, momentum[c]);
  }
  const MuonMatrix view = weight.view();
  ref::muon_update({.matrices = {&view, 1}, .rate = 1.0f, .momentum = 0.75f, .gradient_scale = 2.0f});
  // g = (6, 0); M = (0.25 * 6, 0.75 * 4) = (1.5, 3); X ~ g + 0.75 (M - g) = (2.625, 2.25)
  EXPECT_FLOAT_EQ(weight.momentum.get(0, 0), 1.5f);
  EXPECT_FLOAT_EQ(weight.momentum.get(0, 1), 3.0f);
  const double x = -weight.p.get(0, 0), y = -weight.p.get(0, 1);
  EXPECT_NEAR(y / x, 2.25 / 2.625, 1e-5);
  EXPECT_NEAR(std::hypot(x, y), 1.0, 0.35);
}

TEST(Muon, MatchesTheReferenceAndWritesTheBf16Copy) {
  Weights expected(kShapes);
  ref::muon_update(expected.op());
  for (const Arithmetic arithmetic : {Arithmetic::f32, Arithmetic::bf16}) {
    // In bf16 each of 15 products rounds its factors to 8 bits; the update has entries of about 0.1 / sqrt(side).
    const double tolerance = arithmetic == Arithmetic::f32 ? 2e-5 : 2e-2;
    for_each_isa([&](Isa) {
      Weights got(kShapes);
      cpu::muon_update(got.op(arithmetic));
      for (size_t i = 0; i < kShapes.size(); ++i) {
        SCOPED_TRACE(::testing::Message() << kShapes[i].first << " x " << kShapes[i].second);
        const Weight &a = *got.all[i], &b = *expected.all[i];
        expect_close(a.p, b.p, tolerance * 0.1, "p");
        expect_close(a.momentum, b.momentum, 1e-7, "momentum");
        for (int64_t r = 0; r < a.p.rows(); ++r) {
          for (int64_t c = 0; c < a.p.cols(); ++c) ASSERT_EQ(a.copy.get(r, c), to_float(to_bf16(a.p.get(r, c))));
        }
      }
    });
  }
}

TEST(Muon, GivesTheSameBitsOnAnyNumberOfThreads) {
  const int before = thread_pool().size();
  for (const Arithmetic arithmetic : {Arithmetic::f32, Arithmetic::bf16}) {
    // Enough equal ones that each thread takes whole matrices, and one large one that the thread pool shares.
    for (const auto& shapes : {std::vector<std::pair<int64_t, int64_t>>(6, {160, 144}), {{288, 416}}}) {
      Runtime::current().set_threads(1);
      Weights one(shapes);
      cpu::muon_update(one.op(arithmetic));
      for (const int threads : {2, 3}) {
        Runtime::current().set_threads(threads);
        Weights many(shapes);
        cpu::muon_update(many.op(arithmetic));
        for (size_t i = 0; i < shapes.size(); ++i) {
          const size_t bytes = static_cast<size_t>(shapes[i].first * shapes[i].second) * sizeof(float);
          EXPECT_EQ(std::memcmp(many.views[i].parameters, one.views[i].parameters, bytes), 0) << threads << " threads";
          EXPECT_EQ(std::memcmp(many.views[i].momentum, one.views[i].momentum, bytes), 0) << threads << " threads";
        }
      }
    }
  }
  Runtime::current().set_threads(before);
}

TEST(Muon, GivesATallMatrixTheLongerUpdate) {
  // Near-orthogonal X has squares that sum to its shorter side; tall ones are scaled by sqrt(rows / cols).
  for (const auto& [rows, cols, expected] : {std::tuple{32, 32, 32.0}, {32, 128, 32.0}, {128, 32, 4 * 32.0}}) {
    Weights weights({{rows, cols}});
    const Matrix before(rows, cols, DType::f32, 1);
    MuonUpdate op = weights.op();
    op.decay = 0;
    cpu::muon_update(op);
    double squares = 0;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) squares += std::pow(update_times(before, weights.all[0]->p, r, c), 2);
    }
    EXPECT_NEAR(squares / expected, 0.85, 0.25) << rows << " x " << cols;
  }
}

TEST(Muon, AMatrixWithoutGradientOrMomentumOnlyDecays) {
  for_each_isa([&](Isa) {
    Weights weights({{20, 30}});
    Weight& weight = *weights.all[0];
    for (int64_t r = 0; r < 20; ++r) {
      for (int64_t c = 0; c < 30; ++c) weight.gradient.set(r, c, 0), weight.momentum.set(r, c, 0);
    }
    const float before = weight.p.get(13, 7);
    cpu::muon_update(weights.op());
    EXPECT_FLOAT_EQ(weight.p.get(13, 7), before * (1 - 0.1f * 0.5f));
  });
}

}  // namespace
}  // namespace brisk
