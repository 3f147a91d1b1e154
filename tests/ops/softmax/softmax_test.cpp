#include "ops/softmax/softmax.h"

#include <gtest/gtest.h>

#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::expect_slopes;
using testing::for_each_isa;
using testing::Matrix;
using testing::product_sum;

TEST(Softmax, ReferenceGradientsAreTheSlopesOfItsForward) {
  for (const bool logarithm : {false, true}) {
    for (const int64_t groups : {1, 2}) {
      Matrix x(2, 6, DType::f32, 1), dy(2, 6, DType::f32, 2), dx(2, 6), y(2, 6);
      const auto loss = [&] {
        ref::softmax_forward({x, y, groups, logarithm});
        return product_sum(y, dy);
      };
      loss();
      ref::softmax_backward({y, dy, dx, groups, logarithm});
      expect_slopes(x, dx, Activation::none, 1e-3, loss);
    }
  }
}

TEST(Softmax, GroupsSumToOneHoweverLargeTheirNumbers) {
  const Matrix x(3, 12, DType::f32, 1, 1000.0);
  for_each_isa([&](Isa) {
    Matrix y(3, 12);
    cpu::softmax_forward({x, y, 3});
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t first = 0; first < 12; first += 4) {
        double sum = 0;
        for (int64_t c = first; c < first + 4; ++c) sum += y.get(r, c);
        EXPECT_NEAR(sum, 1, 1e-6);
      }
    }
  });
}

TEST(Softmax, MatchesTheReference) {
  struct Shape {
    int64_t cols, groups;
  };
  for (const Shape& shape : {Shape{1, 1}, Shape{13, 1}, Shape{344, 1}, Shape{2100, 1}, Shape{48, 3}, Shape{64, 16}}) {
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const bool logarithm : {false, true}) {
        SCOPED_TRACE(::testing::Message() << shape.cols << " columns in " << shape.groups);
        const Matrix x(37, shape.cols, type, 1, 3.0, shape.cols + 8), dy(37, shape.cols, type, 2);
        Matrix expected(37, shape.cols, type), expected_dx(37, shape.cols, type, 4);
        ref::softmax_forward({x, expected, shape.groups, logarithm});
        ref::softmax_backward({expected, dy, expected_dx, shape.groups, logarithm, true});
        for_each_isa([&](Isa) {
          Matrix y(37, shape.cols, type), dx(37, shape.cols, type, 4);
          cpu::softmax_forward({x, y, shape.groups, logarithm});
          cpu::softmax_backward({expected, dy, dx, shape.groups, logarithm, true});
          expect_close(y, expected, type == DType::f32 ? 2e-6 : 8e-3, "y");
          expect_close(dx, expected_dx, type == DType::f32 ? 2e-5 : 8e-3, "dx");
        });
      }
    }
  }
}

}  // namespace
}  // namespace brisk
