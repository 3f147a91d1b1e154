// Sums and products with broadcast, sums over columns and rows, and softmax on a GPU, against the reference.
#include <gtest/gtest.h>

#include "ops/elementwise/elementwise.h"
#include "ops/rows/rows_copy.h"
#include "ops/softmax/softmax.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::OnGpu;
using testing::Side;

constexpr DType kEveryType[] = {DType::f32, DType::bf16, DType::f16};

double elementwise_tolerance(DType type) { return type == DType::f32 ? 1e-5 : type == DType::f16 ? 2e-3 : 1e-2; }

using CudaElementwise = OnGpu;

TEST_F(CudaElementwise, CombinesAsTheReferenceForEveryShapeAndType) {
  struct Shape {
    int64_t rows, cols, b_rows, b_cols;
  };
  for (const Shape& shape : {Shape{37, 344, 37, 344}, Shape{37, 13, 1, 13}, Shape{37, 64, 1, 64},
                             Shape{300, 96, 300, 1}, Shape{37, 64, 37, 4}, Shape{37, 60, 37, 4}, Shape{0, 8, 0, 8}}) {
    for (const DType type : kEveryType) {
      for (const DType b_type : kEveryType) {
        for (const bool adds : {false, true}) {
          SCOPED_TRACE(::testing::Message() << shape.cols << " columns by " << shape.b_cols << ", adds " << adds);
          GpuMatrix a(shape.rows, shape.cols, type, 1, 1.0, shape.cols + 8);
          GpuMatrix b(shape.b_rows, shape.b_cols, b_type, 2), y(shape.rows, shape.cols, type, 3);
          for (const Combine::Kind kind : {Combine::Kind::add, Combine::Kind::multiply}) {
            const auto op = [&](Side side) { return Combine{kind, a.at(side), b.at(side), y.at(side), adds}; };
            ref::combine(op(Side::host));
            cuda::combine(op(Side::gpu));
            y.expect_close(elementwise_tolerance(type), "y");
          }
          ref::combine({.b = b.at(Side::host), .y = y.at(Side::host), .y_adds = adds});
          cuda::combine({.b = b.at(Side::gpu), .y = y.at(Side::gpu), .y_adds = adds});
          y.expect_close(elementwise_tolerance(type), "copy");
        }
      }
    }
  }
}

TEST_F(CudaElementwise, SumsColumnsAndRowsAsTheReference) {
  for (const DType type : kEveryType) {
    for (const int64_t rows : {0, 1, 129, 3000}) {
      for (const int64_t groups : {1, 3, 24, 72}) {
        for (const bool adds : {false, true}) {
          SCOPED_TRACE(::testing::Message() << rows << " rows, " << groups << " groups, adds " << adds);
          GpuMatrix a(rows, 72, type, 1, 1.0, 80), b(rows, 72, type, 2), y(rows, groups, type, 3);
          GpuMatrix sums(1, 72, DType::f32, 4), scratch(kSumRowsParts, 72, DType::f32, 5);
          for (const bool product : {false, true}) {
            const auto columns = [&](Side side) {
              return SumColumns{a.at(side), product ? b.at(side) : Tensor{}, y.at(side), adds};
            };
            ref::sum_columns(columns(Side::host));
            cuda::sum_columns(columns(Side::gpu));
            y.expect_close(elementwise_tolerance(type), "sums of columns");
            const auto of_rows = [&](Side side) {
              return SumRows{a.at(side), product ? b.at(side) : Tensor{}, sums.at(side), scratch.at(side), adds};
            };
            ref::sum_rows(of_rows(Side::host));
            cuda::sum_rows(of_rows(Side::gpu));
            sums.expect_close(2e-5, "sums of rows");
          }
        }
      }
    }
  }
}

TEST_F(CudaElementwise, ClearsColumnsAndNothingElse) {
  GpuMatrix x(5, 12, DType::bf16, 1);
  for (const Side side : {Side::host, Side::gpu}) {
    const Tensor middle = x.at(side).columns(3, 4);
    side == Side::host ? cpu::clear_rows(middle) : cuda::clear_rows(middle);
  }
  x.expect_equal("x ");
}

using CudaSoftmax = OnGpu;

TEST_F(CudaSoftmax, IsTheReferencesForEveryShapeAndType) {
  struct Shape {
    int64_t cols, groups;
  };
  for (const Shape& shape : {Shape{1, 1}, Shape{13, 1}, Shape{344, 1}, Shape{5000, 1}, Shape{48, 3}, Shape{64, 16}}) {
    for (const DType type : kEveryType) {
      for (const bool logarithm : {false, true}) {
        SCOPED_TRACE(::testing::Message() << shape.cols << " columns in " << shape.groups);
        GpuMatrix x(37, shape.cols, type, 1, 3.0, shape.cols + 8), y(37, shape.cols, type, 0, 0);
        GpuMatrix dy(37, shape.cols, type, 2), dx(37, shape.cols, type, 3);
        const auto forward = [&](Side side) { return SoftmaxForward{x.at(side), y.at(side), shape.groups, logarithm}; };
        ref::softmax_forward(forward(Side::host));
        cuda::softmax_forward(forward(Side::gpu));
        y.expect_close(elementwise_tolerance(type), "y");
        y.take_reference();
        const auto backward = [&](Side side) {
          return SoftmaxBackward{y.at(side), dy.at(side), dx.at(side), shape.groups, logarithm, true};
        };
        ref::softmax_backward(backward(Side::host));
        cuda::softmax_backward(backward(Side::gpu));
        dx.expect_close(elementwise_tolerance(type), "dx");
      }
    }
  }
}

}  // namespace
}  // namespace brisk
