#include "ops/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;

constexpr DType kTypes[] = {DType::f32, DType::bf16};

double tolerance_of(DType type) { return type == DType::f32 ? 2e-6 : 8e-3; }

TEST(Combine, AddsAndMultipliesWithWhatABroadcastOperandSays) {
  Matrix a(2, 4, DType::f32, 1), y(2, 4), factors(2, 2), vector(1, 4, DType::f32, 3);
  factors.set(0, 0, 2);
  factors.set(0, 1, 3);
  ref::combine({Combine::Kind::multiply, a, factors, y});
  EXPECT_EQ(y.get(0, 1), 2 * a.get(0, 1));
  EXPECT_EQ(y.get(0, 2), 3 * a.get(0, 2));
  ref::combine({Combine::Kind::add, a, vector, y});
  EXPECT_EQ(y.get(1, 3), a.get(1, 3) + vector.get(0, 3));
  ref::combine({.b = vector, .y = y, .y_adds = true});
  EXPECT_EQ(y.get(1, 3), a.get(1, 3) + vector.get(0, 3) + vector.get(0, 3));
}

TEST(Combine, MatchesTheReference) {
  struct Shape {
    int64_t rows, cols, b_rows, b_cols;
  };
  for (const Shape& shape : {Shape{37, 344, 37, 344}, Shape{37, 13, 1, 13}, Shape{300, 96, 300, 1},
                             Shape{37, 60, 37, 4}, Shape{5, 12, 5, 6}, Shape{1, 7, 1, 1}}) {
    for (const Combine::Kind kind : {Combine::Kind::add, Combine::Kind::multiply}) {
      for (const DType type : kTypes) {
        for (const DType b_type : kTypes) {
          for (const bool adds : {false, true}) {
            SCOPED_TRACE(::testing::Message() << shape.cols << " columns by " << shape.b_cols << ", adds " << adds);
            const Matrix a(shape.rows, shape.cols, type, 1, 1.0, shape.cols + 8);
            const Matrix b(shape.b_rows, shape.b_cols, b_type, 2);
            Matrix expected(shape.rows, shape.cols, type, 3), copied(shape.rows, shape.cols, type, 4);
            ref::combine({kind, a, b, expected, adds});
            ref::combine({kind, {}, b, copied, adds});
            for_each_isa([&](Isa) {
              Matrix y(shape.rows, shape.cols, type, 3), copy(shape.rows, shape.cols, type, 4);
              cpu::combine({kind, a, b, y, adds});
              cpu::combine({kind, {}, b, copy, adds});
              expect_close(y, expected, tolerance_of(type), "y");
              expect_close(copy, copied, tolerance_of(type), "copy");
            });
          }
        }
      }
    }
  }
}

TEST(SumColumns, MatchesTheReference) {
  for (const int64_t groups : {1, 3, 24, 72}) {
    for (const DType type : kTypes) {
      for (const bool adds : {false, true}) {
        const Matrix a(41, 72, type, 1, 1.0, 80), b(41, 72, type, 2);
        Matrix plain(41, groups, DType::f32, 3), product(41, groups, type, 3);
        ref::sum_columns({a, {}, plain, adds});
        ref::sum_columns({a, b, product, adds});
        for_each_isa([&](Isa) {
          Matrix y(41, groups, DType::f32, 3), z(41, groups, type, 3);
          cpu::sum_columns({a, {}, y, adds});
          cpu::sum_columns({a, b, z, adds});
          expect_close(y, plain, 2e-6, "sums");
          expect_close(z, product, tolerance_of(type), "sums of products");
        });
      }
    }
  }
}

TEST(SumRows, MatchesTheReferenceWhateverTheNumberOfRows) {
  for (const int64_t rows : {0, 1, 127, 128, 129, 1000}) {
    for (const DType type : kTypes) {
      for (const bool adds : {false, true}) {
        SCOPED_TRACE(rows);
        const Matrix a(rows, 37, type, 1), b(rows, 37, type, 2), scratch(kSumRowsParts, 37, DType::f32, 9);
        Matrix plain(1, 37, DType::f32, 3), product(1, 37, DType::f32, 3);
        ref::sum_rows({a, {}, plain, {}, adds});
        ref::sum_rows({a, b, product, {}, adds});
        for_each_isa([&](Isa) {
          Matrix y(1, 37, DType::f32, 3), z(1, 37, DType::f32, 3);
          cpu::sum_rows({a, {}, y, scratch, adds});
          cpu::sum_rows({a, b, z, scratch, adds});
          expect_close(y, plain, 1e-5, "sums");
          expect_close(z, product, 1e-5, "sums of products");
        });
      }
    }
  }
}

}  // namespace
}  // namespace brisk
