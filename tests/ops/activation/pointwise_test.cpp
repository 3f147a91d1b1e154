#include "ops/activation/pointwise.h"

#include <gtest/gtest.h>

#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::expect_slopes;
using testing::for_each_isa;
using testing::kEveryActivation;
using testing::Matrix;
using testing::product_sum;

TEST(Pointwise, ReferenceGradientsAreTheSlopesOfItsForward) {
  for (const Activation kind : kEveryActivation) {
    SCOPED_TRACE(static_cast<int>(kind));
    Matrix x(2, 5, DType::f32, 1), dy(2, 5, DType::f32, 2), dx(2, 5), y(2, 5);
    ref::pointwise_backward({kind, 1.5f, x, dy, dx});
    const auto loss = [&] {
      ref::pointwise_forward({kind, 1.5f, x, y});
      return product_sum(y, dy);
    };
    expect_slopes(x, dx, kind, 2e-3, loss);
  }
}

TEST(Pointwise, MatchesTheReference) {
  for (const Activation kind : kEveryActivation) {
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const int64_t width : {1, 13, 64, 344}) {
        SCOPED_TRACE(::testing::Message() << "activation " << static_cast<int>(kind) << ", width " << width);
        const Matrix x(37, width, type, 1, 3.0, width + 8), dy(37, width, type, 2);
        Matrix expected_y(37, width, type), expected_dx(37, width, type);
        ref::pointwise_forward({kind, 0.75f, x, expected_y});
        ref::pointwise_backward({kind, 0.75f, x, dy, expected_dx});
        for_each_isa([&](Isa) {
          Matrix y(37, width, type, 5), dx(37, width, type, 6);
          cpu::pointwise_forward({kind, 0.75f, x, y});
          cpu::pointwise_backward({kind, 0.75f, x, dy, dx});
          expect_close(y, expected_y, type == DType::f32 ? 2e-5 : 8e-3, "y");
          expect_close(dx, expected_dx, type == DType::f32 ? 2e-5 : 8e-3, "dx");
        });
      }
    }
  }
}

}  // namespace
}  // namespace brisk
