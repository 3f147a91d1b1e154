#include "ops/norm/norm.h"

#include <gtest/gtest.h>

#include <tuple>

#include "base/runtime.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;
using testing::product_sum;
using testing::Ragged;
using testing::slope_of;

// All tensors of one forward and backward; x and dx may be wider than what is normalised.
struct Norm {
  Norm(NormKind kind, int64_t rows, int64_t width, DType type = DType::f32, int64_t stride = 0)
      : kind(kind),
        x(rows, width, type, 1, 2.0, stride),
        gain(1, width, DType::f32, 2),
        bias(1, width, DType::f32, 3),
        y(rows, width, type, 0, 0),
        mean(rows, 1, DType::f32, 0, 0),
        rstd(rows, 1, DType::f32, 0, 0),
        dy(rows, width, type, 4),
        dx(rows, width, type, 5, 1.0, stride),
        dgain(1, width, DType::f32, 6),
        dbias(1, width, DType::f32, 7) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < width; ++c) x.set(r, c, x.get(r, c) + 0.5f);
    }
  }
  NormForward forward() const {
    const bool layer = kind == NormKind::layer;
    return {kind, 1e-5f, x, gain, layer ? bias.view() : Tensor{}, y, layer ? mean.view() : Tensor{}, rstd};
  }
  NormBackward backward(bool adds) const {
    const bool layer = kind == NormKind::layer;
    return {kind, x,     gain, layer ? mean.view() : Tensor{},  rstd, dy, dx,
            adds, dgain, adds, layer ? dbias.view() : Tensor{}, adds};
  }
  double loss() const { return product_sum(y, dy); }
  NormKind kind;
  Matrix x, gain, bias, y, mean, rstd, dy, dx, dgain, dbias;
};

// How fast the loss changes with one element of one of its tensors.
template <typename Probe>
double slope(Probe& probe, Matrix& of, int64_t r, int64_t c) {
  return slope_of(of, r, c, 1e-2f, [&] {
    ref::norm_forward(probe.forward());
    return probe.loss();
  });
}

TEST(Norm, ReferenceGradientsAreTheSlopesOfItsForward) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    Norm norm(kind, 3, 7), probe(kind, 3, 7);
    ref::norm_forward(norm.forward());
    ref::norm_backward(norm.backward(false));
    for (int64_t c = 0; c < 7; ++c) {
      for (int64_t r = 0; r < 3; ++r)
        ASSERT_NEAR(norm.dx.get(r, c), slope(probe, probe.x, r, c), 1e-3) << r << " " << c;
      ASSERT_NEAR(norm.dgain.get(0, c), slope(probe, probe.gain, 0, c), 1e-3) << c;
      if (kind == NormKind::rms) continue;
      ASSERT_NEAR(norm.dbias.get(0, c), slope(probe, probe.bias, 0, c), 1e-3) << c;
    }
  }
}

TEST(Norm, ReferenceRowsHaveMeanZeroAndVarianceOne) {
  Norm norm(NormKind::layer, 1, 100);
  for (int64_t c = 0; c < 100; ++c) norm.gain.set(0, c, 1), norm.bias.set(0, c, 0);
  ref::norm_forward(norm.forward());
  double mean = 0, square = 0;
  for (int64_t c = 0; c < 100; ++c) mean += norm.y.get(0, c) / 100, square += norm.y.get(0, c) * norm.y.get(0, c) / 100;
  EXPECT_NEAR(mean, 0, 1e-5);
  EXPECT_NEAR(square, 1, 1e-4);
}

// Sequences of these lengths: 70 rows.
const std::vector<int> kLengths = {5, 1, 40, 2, 22};

struct DroppedNorm : Norm {
  DroppedNorm(NormKind kind, int64_t width, DType type) : Norm(kind, 70, width, type), ragged(kLengths) {}
  NormForward forward() const {
    NormForward op = Norm::forward();
    op.dropout = {0.3f, 21};
    op.rows = ragged.view();
    return op;
  }
  NormBackward backward(bool adds) const {
    NormBackward op = Norm::backward(adds);
    op.dropout = {0.3f, 21};
    op.rows = ragged.view();
    return op;
  }
  Ragged ragged;
};

TEST(Norm, ReferenceGradientsWithDropoutAreTheSlopesOfItsForward) {
  DroppedNorm norm(NormKind::layer, 7, DType::f32), probe(NormKind::layer, 7, DType::f32);
  ref::norm_forward(norm.forward());
  ref::norm_backward(norm.backward(false));
  for (int64_t r = 0; r < 70; r += 9) {
    for (int64_t c = 0; c < 7; ++c) {
      ASSERT_NEAR(norm.dx.get(r, c), slope(probe, probe.x, r, c), 2e-3) << r << " " << c;
    }
  }
}

TEST(Norm, WithDropoutMatchesTheReferenceAndDropsTheShareAskedFor) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const bool adds : {false, true}) {
      const double tolerance = type == DType::f32 ? 2e-5 : 8e-3;
      DroppedNorm expected(NormKind::layer, 100, type);
      ref::norm_forward(expected.forward());
      ref::norm_backward(expected.backward(adds));
      int dropped = 0;
      for (int64_t r = 0; r < 70; ++r) {
        for (int64_t c = 0; c < 100; ++c) dropped += expected.y.get(r, c) == 0;
      }
      EXPECT_NEAR(dropped / 7000.0, 0.3, 0.02);
      for_each_isa([&](Isa) {
        DroppedNorm got(NormKind::layer, 100, type);
        cpu::norm_forward(got.forward());
        cpu::norm_backward(got.backward(adds));
        expect_close(got.y, expected.y, tolerance, "y");
        expect_close(got.dx, expected.dx, tolerance, "dx");
        expect_close(got.dgain, expected.dgain, 2e-5, "dgain");
        expect_close(got.dbias, expected.dbias, 2e-5, "dbias");
      });
    }
  }
}

void expect_same_as_reference(NormKind kind, int64_t rows, int64_t width, DType type, int64_t stride, bool adds,
                              double tolerance) {
  Norm expected(kind, rows, width, type, stride);
  ref::norm_forward(expected.forward());
  ref::norm_backward(expected.backward(adds));
  for_each_isa([&](Isa) {
    Norm got(kind, rows, width, type, stride);
    cpu::norm_forward(got.forward());
    expect_close(got.y, expected.y, tolerance, "y");
    expect_close(got.rstd, expected.rstd, 1e-5, "rstd");
    if (kind == NormKind::layer) expect_close(got.mean, expected.mean, 1e-5, "mean");
    cpu::norm_backward(got.backward(adds));
    expect_close(got.dx, expected.dx, tolerance, "dx");
    expect_close(got.dgain, expected.dgain, 2e-5, "dgain");
    if (kind == NormKind::layer) expect_close(got.dbias, expected.dbias, 2e-5, "dbias");
  });
}

TEST(Norm, MatchesTheReferenceForAnyWidthAndNumberOfRows) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    for (const int64_t width : {1, 7, 16, 50, 256, 777}) {
      for (const int64_t rows : {1, 3, 4, 150}) {
        SCOPED_TRACE(::testing::Message() << width << " wide, " << rows << " rows");
        // A row of one value is normalised to rounding noise times rstd = 316: nothing to compare.
        if (width == 1 && kind == NormKind::layer) continue;
        expect_same_as_reference(kind, rows, width, DType::f32, 0, rows == 3, 2e-5);
      }
    }
  }
}

TEST(Norm, MatchesTheReferenceInBf16) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    expect_same_as_reference(kind, 70, 256, DType::bf16, 0, false, 8e-3);
    expect_same_as_reference(kind, 70, 100, DType::bf16, 0, true, 8e-3);
  }
}

TEST(Norm, MatchesTheReferenceOnColumnsOfAWiderMatrix) {
  expect_same_as_reference(NormKind::layer, 9, 40, DType::f32, 64, true, 2e-5);
}

TEST(Norm, ReadsAndWritesDifferentTypes) {
  Norm bf16(NormKind::layer, 20, 64, DType::bf16);
  for_each_isa([&](Isa) {
    Matrix y(20, 64, DType::f32, 0, 0), expected(20, 64, DType::f32, 0, 0);
    NormForward op = bf16.forward();
    op.y = expected;
    ref::norm_forward(op);
    op.y = y;
    cpu::norm_forward(op);
    expect_close(y, expected, 2e-5, "f32 y of bf16 x");
  });
}

// A frozen gain, or nothing trained below.
TEST(Norm, LeavesOutTheGradientsNobodyWants) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    Norm expected(kind, 37, 50);
    ref::norm_forward(expected.forward());
    ref::norm_backward(expected.backward(false));
    const auto check = [&](const auto& forward, const auto& backward) {
      Norm without_dx(kind, 37, 50), without_gain(kind, 37, 50);
      for (Norm* norm : {&without_dx, &without_gain}) forward(norm->forward());
      NormBackward op = without_dx.backward(false);
      op.dx = {};
      backward(op);
      expect_close(without_dx.dgain, expected.dgain, 2e-5, "dgain without dx");
      op = without_gain.backward(false);
      op.dgain = op.dbias = {};
      backward(op);
      expect_close(without_gain.dx, expected.dx, 2e-5, "dx without dgain");
    };
    check(ref::norm_forward, ref::norm_backward);
    for_each_isa([&](Isa) { check(cpu::norm_forward, cpu::norm_backward); });
  }
}

TEST(Norm, AnEmptyBatchHasZeroGradients) {
  for_each_isa([&](Isa) {
    Norm norm(NormKind::layer, 0, 20);
    cpu::norm_forward(norm.forward());
    cpu::norm_backward(norm.backward(false));
    EXPECT_EQ(norm.dgain.get(0, 3), 0);
    EXPECT_EQ(norm.dbias.get(0, 19), 0);
  });
}

TEST(Norm, NumberOfThreadsChangesOnlyTheRoundingOfTheGainsGradient) {
  const int threads = thread_pool().size();
  for_each_isa([&](Isa) {
    Norm one(NormKind::layer, 500, 96), two(NormKind::layer, 500, 96);
    Runtime::current().set_threads(1);
    cpu::norm_forward(one.forward());
    cpu::norm_backward(one.backward(false));
    Runtime::current().set_threads(2);
    cpu::norm_forward(two.forward());
    cpu::norm_backward(two.backward(false));
    expect_close(two.y, one.y, 0, "y");
    expect_close(two.dx, one.dx, 0, "dx");
    expect_close(two.dgain, one.dgain, 1e-6, "dgain");
    expect_close(two.dbias, one.dbias, 1e-6, "dbias");
  });
  Runtime::current().set_threads(threads);
}

}  // namespace
}  // namespace brisk
