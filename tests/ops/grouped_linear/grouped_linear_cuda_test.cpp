// grouped_linear and interpolate on a GPU, against the reference.
#include <gtest/gtest.h>

#include "ops/grouped_linear/grouped_linear.h"
#include "ops/interpolate/interpolate.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::OnGpu;
using testing::Side;

using CudaGroupedLinear = OnGpu;
using CudaInterpolate = OnGpu;

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

double tolerance_of(DType type) { return type == DType::f32 ? 2e-5 : type == DType::f16 ? 3e-3 : 1e-2; }

void expect_as_reference(int64_t rows, const GroupedLinearShape& shape, DType type, bool adds) {
  const int64_t inputs = shape.groups * shape.inputs.inputs, outputs = shape.parts * shape.groups * shape.outputs;
  GpuMatrix x(rows, inputs, type, 1), weight(outputs, shape.inputs.inputs, DType::f32, 2);
  GpuMatrix bias(1, outputs, DType::f32, 3), y(rows, outputs, type, 0, 0), dy(rows, outputs, type, 4);
  GpuMatrix dx(rows, inputs, type, 5), dweight(outputs, shape.inputs.inputs, DType::f32, 6);
  GpuMatrix dbias(1, outputs, DType::f32, 7);
  GpuMatrix scratch(kGroupedLinearParts, outputs * (shape.inputs.inputs + 1), DType::f32, 0, 0);
  const auto forward = [&](Side side) {
    return GroupedLinearForward{shape, x.at(side), weight.at(side), bias.at(side), y.at(side)};
  };
  const auto backward = [&](Side side) {
    GroupedLinearBackward op{.shape = shape, .dy = dy.at(side), .x = x.at(side), .weight = weight.at(side)};
    op.dx = dx.at(side);
    op.dweight = dweight.at(side);
    op.dbias = dbias.at(side);
    op.dx_adds = op.dweight_adds = op.dbias_adds = adds;
    op.scratch = scratch.at(side);
    return op;
  };
  ref::grouped_linear_forward(forward(Side::host));
  cuda::grouped_linear_forward(forward(Side::gpu));
  ref::grouped_linear_backward(backward(Side::host));
  cuda::grouped_linear_backward(backward(Side::gpu));
  y.expect_close(tolerance_of(type), "y");
  dx.expect_close(tolerance_of(type), "dx");
  dweight.expect_close(5e-5, "dweight");
  dbias.expect_close(5e-5, "dbias");
}

TEST_F(CudaGroupedLinear, MatchesTheReference) {
  for (const DType type : kTypes) {
    for (const bool adds : {false, true}) {
      expect_as_reference(300, {16, 3, 4, {.inputs = 4}}, type, adds);
      expect_as_reference(77, {16, 1, 4, {.inputs = 4, .matrix_cols = 8, .tile_cols = 2}}, type, adds);
      expect_as_reference(5, {3, 2, 5, {.inputs = 7}}, type, adds);
    }
  }
}

void expect_interpolation_as_reference(int64_t rows, int64_t columns, int64_t groups, DType type, bool adds) {
  GpuMatrix x(rows, columns, DType::f32, 1), target(rows, columns, type, 2), share(rows, groups, type, 3);
  GpuMatrix y(rows, columns, DType::f32, 0, 0), dy(rows, columns, DType::f32, 4), dx(rows, columns, DType::f32, 5);
  GpuMatrix dtarget(rows, columns, type, 6), dshare(rows, groups, type, 7);
  const auto forward = [&](Side side) {
    return InterpolateForward{x.at(side), target.at(side), share.at(side), y.at(side)};
  };
  const auto backward = [&](Side side) {
    return InterpolateBackward{x.at(side),       target.at(side), share.at(side), dy.at(side), dx.at(side),
                               dtarget.at(side), dshare.at(side), adds,           adds,        adds};
  };
  ref::interpolate_forward(forward(Side::host));
  cuda::interpolate_forward(forward(Side::gpu));
  ref::interpolate_backward(backward(Side::host));
  cuda::interpolate_backward(backward(Side::gpu));
  y.expect_close(2e-5, "y");
  dx.expect_close(2e-5, "dx");
  dtarget.expect_close(tolerance_of(type), "dtarget");
  dshare.expect_close(tolerance_of(type), "dshare");
}

TEST_F(CudaInterpolate, MatchesTheReference) {
  for (const DType type : kTypes) {
    for (const bool adds : {false, true}) {
      expect_interpolation_as_reference(77, 64, 16, type, adds);
      expect_interpolation_as_reference(5, 300, 3, type, adds);
      expect_interpolation_as_reference(9, 12, 12, type, adds);
    }
  }
}

}  // namespace
}  // namespace brisk
