#include "ops/activation/gated.h"

#include <gtest/gtest.h>

#include "base/threads.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::expect_slopes;
using testing::for_each_isa;
using testing::kEveryActivation;
using testing::Matrix;
using testing::product_sum;

TEST(Gated, ReferenceGradientsAreTheSlopesOfItsForward) {
  for (const Activation kind : kEveryActivation) {
    SCOPED_TRACE(static_cast<int>(kind));
    Matrix x(2, 10, DType::f32, 1), dy(2, 5, DType::f32, 2), dx(2, 10), y(2, 5);
    ref::gated_backward({kind, x, dy, dx});
    const auto loss = [&] {
      ref::gated_forward({kind, x, y});
      return product_sum(y, dy);
    };
    expect_slopes(x, dx, kind, 1e-3, loss);
  }
}

TEST(Gated, MatchesTheReference) {
  for (const Activation kind : kEveryActivation) {
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const int64_t width : {1, 13, 64, 344}) {
        SCOPED_TRACE(::testing::Message() << "activation " << static_cast<int>(kind) << ", width " << width);
        const Matrix x(37, 2 * width, type, 1, 3.0, 2 * width + 8), dy(37, width, type, 2);
        Matrix expected_y(37, width, type), expected_dx(37, 2 * width, type);
        ref::gated_forward({kind, x, expected_y});
        ref::gated_backward({kind, x, dy, expected_dx});
        for_each_isa([&](Isa) {
          Matrix y(37, width, type, 5), dx(37, 2 * width, type, 6);
          cpu::gated_forward({kind, x, y});
          cpu::gated_backward({kind, x, dy, dx});
          expect_close(y, expected_y, type == DType::f32 ? 2e-5 : 8e-3, "y");
          expect_close(dx, expected_dx, type == DType::f32 ? 2e-5 : 8e-3, "dx");
        });
      }
    }
  }
}

TEST(Gated, SaturatesWithoutInfinities) {
  for_each_isa([&](Isa) {
    for (const Activation kind : kEveryActivation) {
      Matrix x(2, 32), y(2, 16), dy(2, 16), dx(2, 32);
      for (int64_t c = 0; c < 16; ++c) {
        x.set(0, c, 500);
        x.set(1, c, -500);
        x.set(0, 16 + c, 1);
        x.set(1, 16 + c, 1);
      }
      cpu::gated_forward({kind, x, y});
      cpu::gated_backward({kind, x, dy, dx});
      EXPECT_NEAR(y.get(0, 3), activate(kind, 500), 1e-3);
      EXPECT_NEAR(y.get(1, 3), activate(kind, -500), 1e-6);
      for (int64_t c = 0; c < 32; ++c) ASSERT_TRUE(std::isfinite(dx.get(0, c)) && std::isfinite(dx.get(1, c)));
    }
  });
}

TEST(Gated, AnEmptyBatchDoesNothing) {
  for_each_isa([&](Isa) {
    const Matrix x(0, 32), y(0, 16);
    cpu::gated_forward({Activation::silu, x, y});
    cpu::gated_backward({Activation::silu, x, y, x});
  });
}

}  // namespace
}  // namespace brisk
