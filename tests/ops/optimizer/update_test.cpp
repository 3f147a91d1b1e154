#include "ops/optimizer/update.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/runtime.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;

struct Parameters {
  explicit Parameters(int64_t count)
      : count(count),
        p(1, count, DType::f32, 1),
        gradient(1, count, DType::f32, 2, 0.01),
        m(1, count, DType::f32, 3, 0.01),
        v(1, count, DType::f32, 4, 0.01),
        copy(1, count, DType::bf16, 5) {
    for (int64_t i = 0; i < count; ++i) v.set(0, i, v.get(0, i) * v.get(0, i));
  }
  AdamWUpdate op() const {
    AdamWUpdate op;
    op.parameters = p.view().f32();
    op.gradient = gradient.view().f32();
    op.m = m.view().f32();
    op.v = v.view().f32();
    op.copy = copy.view().bf16();
    op.count = count;
    op.rate = 0.01f;
    op.beta1 = 0.9f;
    op.beta2 = 0.95f;
    op.decay = 0.1f;
    op.correction1 = 1 - 0.9f * 0.9f;
    op.correction2 = 1 - 0.95f * 0.95f;
    op.gradient_scale = 0.5f;
    return op;
  }
  int64_t count;
  Matrix p, gradient, m, v, copy;
};

TEST(AdamW, ReferenceTakesOneStepOfTheRateAgainstAFreshGradient) {
  // From zero state, corrected m / sqrt(v) is the gradient's sign.
  float p = 2, m = 0, v = 0;
  const float gradient = -3;
  AdamWUpdate op;
  op.parameters = &p;
  op.gradient = &gradient;
  op.m = &m;
  op.v = &v;
  op.count = 1;
  op.rate = 0.1f;
  op.decay = 0.5f;
  op.correction1 = 1 - op.beta1;
  op.correction2 = 1 - op.beta2;
  ref::adamw_update(op);
  EXPECT_NEAR(p, 2 - 0.1 * 0.5 * 2 + 0.1, 1e-5);
  EXPECT_NEAR(m, -0.3, 1e-6);
  EXPECT_NEAR(v, 0.009, 1e-6);
}

TEST(AdamW, MatchesTheReferenceAndWritesTheBf16Copy) {
  for (const int64_t count : {0, 1, 15, 16, 17, 100, 20011}) {
    Parameters expected(count);
    ref::adamw_update(expected.op());
    for_each_isa([&](Isa) {
      Parameters got(count);
      cpu::adamw_update(got.op());
      expect_close(got.p, expected.p, 1e-6, "p");
      expect_close(got.m, expected.m, 1e-7, "m");
      expect_close(got.v, expected.v, 1e-7, "v");
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(got.copy.get(0, i), to_float(to_bf16(got.p.get(0, i)))) << i;
    });
  }
}

TEST(AdamW, AParameterWithoutGradientOrStateOnlyDecays) {
  for_each_isa([&](Isa) {
    Parameters zero(40);
    for (int64_t i = 0; i < 40; ++i) zero.gradient.set(0, i, 0), zero.m.set(0, i, 0), zero.v.set(0, i, 0);
    const float before = zero.p.get(0, 33);
    cpu::adamw_update(zero.op());
    EXPECT_FLOAT_EQ(zero.p.get(0, 33), before * (1 - 0.01f * 0.1f));
  });
}

TEST(AdamW, LooksAtEveryRowThatHasAGradientOrHistoryAmongRowsThatHaveNone) {
  constexpr int64_t kCount = 3000;
  for (const auto& [at, kind] : {std::pair{300, 0}, {1023, 1}, {1024, 2}, {2999, 0}, {511, 2}}) {
    const auto silence = [at = at, kind = kind](Parameters& all) {
      for (int64_t i = 0; i < kCount; ++i) all.gradient.set(0, i, 0), all.m.set(0, i, 0), all.v.set(0, i, 0);
      (kind == 0 ? all.gradient : kind == 1 ? all.m : all.v).set(0, at, 0.5f);
    };
    Parameters expected(kCount);
    silence(expected);
    ref::adamw_update(expected.op());
    for_each_isa([&](Isa) {
      Parameters got(kCount);
      silence(got);
      cpu::adamw_update(got.op());
      expect_close(got.p, expected.p, 1e-6, "p");
      expect_close(got.m, expected.m, 1e-7, "m");
      expect_close(got.v, expected.v, 1e-7, "v");
      for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(got.copy.get(0, i), to_float(to_bf16(got.p.get(0, i)))) << i;
    });
  }
}

TEST(AdamW, GivesManyParametersTheSameBitsWithAnyNumberOfThreads) {
  const int threads = thread_pool().size();
  constexpr int64_t kCount = (int64_t{5} << 18) + 77;
  Runtime::current().set_threads(1);
  Parameters one(kCount);
  cpu::adamw_update(one.op());
  const double norm = cpu::squared_norm(one.gradient.view().f32(), kCount);
  for (const int pool : {2, 3}) {
    Runtime::current().set_threads(pool);
    Parameters many(kCount);
    cpu::adamw_update(many.op());
    for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(many.p.get(0, i), one.p.get(0, i)) << i;
    EXPECT_EQ(cpu::squared_norm(one.gradient.view().f32(), kCount), norm) << pool << " threads";
  }
  Runtime::current().set_threads(threads);
}

TEST(AdamW, NeedsNoCopyAndWritesNothingPastTheEnd) {
  for_each_isa([&](Isa) {
    Parameters p(40);
    AdamWUpdate op = p.op();
    op.copy = nullptr;
    op.count = 35;
    const float before = p.p.get(0, 35), copy_before = p.copy.get(0, 3);
    cpu::adamw_update(op);
    EXPECT_EQ(p.p.get(0, 35), before);
    EXPECT_EQ(p.copy.get(0, 3), copy_before);
  });
}

TEST(SquaredNorm, IsTheSumOfSquaresForAnyCount) {
  for (const int64_t count : {0, 1, 17, 4096, 50001}) {
    const Matrix values(1, count);
    const double expected = ref::squared_norm(values.view().f32(), count);
    for_each_isa(
        [&](Isa) { EXPECT_NEAR(cpu::squared_norm(values.view().f32(), count), expected, 1e-6 * expected) << count; });
  }
}

TEST(ConvertToBf16, RoundsToNearestEvenLikeTheReference) {
  const Matrix values(1, 10007);
  const Tensor t = values.view();
  t.f32()[5] = std::nanf("");
  t.f32()[6] = INFINITY;
  t.f32()[7] = -0.0f;
  t.f32()[8] = 1.00390625f;  // halfway between two neighbours: to even
  t.f32()[9] = 1.01171875f;
  Matrix expected(1, 10007, DType::bf16);
  ref::convert_to_bf16(t.f32(), expected.view().bf16(), 10007);
  EXPECT_EQ(expected.get(0, 8), 1.0f);
  EXPECT_EQ(expected.get(0, 9), 1.015625f);
  for_each_isa([&](Isa) {
    Matrix got(1, 10007, DType::bf16, 3);
    cpu::convert_to_bf16(t.f32(), got.view().bf16(), 10007);
    EXPECT_TRUE(std::isnan(got.get(0, 5)));
    for (int64_t i = 0; i < 10007; ++i) {
      if (i == 5) continue;
      ASSERT_EQ(got.view().bf16()[i].bits, expected.view().bf16()[i].bits) << i;
    }
  });
}

}  // namespace
}  // namespace brisk
