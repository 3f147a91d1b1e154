// Products on a GPU that round their operands further than their type does, against references of what they should
// be.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"
#include "ops/linear/linear.h"
#include "ops/loss/linear_cross_entropy.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::GpuNumbers;
using testing::GpuRows;
using testing::OnGpu;
using testing::Side;

using CudaTf32 = OnGpu;

// Ten bits of the mantissa, the nearest.
float to_tf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0xFFFu + ((bits >> 13) & 1u)) & ~0x1FFFu);
}

double largest_gap(const testing::Matrix& a, const testing::Matrix& b) {
  double gap = 0;
  for (int64_t r = 0; r < a.rows(); ++r) {
    for (int64_t c = 0; c < a.cols(); ++c) gap = std::max(gap, std::fabs(double{a.get(r, c)} - b.get(r, c)));
  }
  return gap;
}

TEST_F(CudaTf32, ProductsRoundTheirOperandsToTenBits) {
  constexpr int64_t kSide = 128, kDepth = 256;
  GpuMatrix a(kSide, kDepth, DType::f32, 1), b(kSide, kDepth, DType::f32, 2), c(kSide, kSide, DType::f32, 3, 0);
  testing::Matrix exact(kSide, kSide, DType::f32, 4, 0);
  for (int64_t i = 0; i < kSide; ++i) {
    for (int64_t j = 0; j < kSide; ++j) {
      double rounded_sum = 0, sum = 0;
      for (int64_t q = 0; q < kDepth; ++q) {
        rounded_sum += double{to_tf32(a.host().get(i, q))} * to_tf32(b.host().get(j, q));
        sum += double{a.host().get(i, q)} * b.host().get(j, q);
      }
      c.host().set(i, j, static_cast<float>(rounded_sum));
      exact.set(i, j, static_cast<float>(sum));
    }
  }
  cuda::GemmProblem product{.m = kSide,
                            .n = kSide,
                            .k = kDepth,
                            .a = operand(a.at(Side::gpu)),
                            .b = operand(b.at(Side::gpu), true),
                            .c = c.at(Side::gpu)};
  product.tf32 = true;
  ASSERT_TRUE(cuda::multiply(product));
  // A GPU may cut bits off where this rounds them, so the two agree within a unit of the tenth bit.
  c.expect_close(2e-3, "c");
  EXPECT_GT(largest_gap(c.gpu(), exact), 1e-3);

  // The same shape in fp32 takes another algorithm: their choices are kept apart.
  product.tf32 = false;
  ASSERT_TRUE(cuda::multiply(product));
  EXPECT_LT(largest_gap(c.gpu(), exact), 1e-3);
}

TEST_F(CudaTf32, LinearAndLossFollowTheReference) {
  constexpr int64_t kInputs = 96, kOutputs = 160;
  const GpuRows rows({40, 1, 23});
  const int64_t n = rows.rows();
  GpuMatrix x(n, kInputs, DType::f32, 1), weight(kOutputs, kInputs, DType::f32, 2, 0.1), dy(n, kOutputs, DType::f32, 3);
  GpuMatrix bias(1, kOutputs, DType::f32, 4), y(n, kOutputs, DType::f32, 5, 0), before(n, kOutputs, DType::f32, 6, 0);
  GpuMatrix scratch(n, kOutputs, DType::f32, 7, 0), dx(n, kInputs, DType::f32, 8, 0);
  GpuMatrix dweight(kOutputs, kInputs, DType::f32, 9, 0), dbias(1, kOutputs, DType::f32, 10, 0);
  const auto forward = [&](Side side) {
    LinearForward op;
    op.x = x.at(side);
    op.weight = weight.at(side);
    op.bias = bias.at(side);
    op.activation = Activation::gelu_tanh;
    op.before = before.at(side);
    op.rows = rows.at(side);
    op.y = y.at(side);
    op.products = GemmFormat::tf32;
    return op;
  };
  const auto backward = [&](Side side) {
    LinearBackward op;
    op.dy = dy.at(side);
    op.x = x.at(side);
    op.weight = weight.at(side);
    op.activation = Activation::gelu_tanh;
    op.before = before.at(side);
    op.rows = rows.at(side);
    op.scratch = scratch.at(side);
    op.dx = dx.at(side);
    op.dweight = dweight.at(side);
    op.dbias = dbias.at(side);
    op.products = GemmFormat::tf32;
    return op;
  };
  ref::linear_forward(forward(Side::host));
  cuda::linear_forward(forward(Side::gpu));
  y.expect_close(2e-3, "y");
  ref::linear_backward(backward(Side::host));
  cuda::linear_backward(backward(Side::gpu));
  dx.expect_close(2e-3, "dx");
  dweight.expect_close(2e-3, "dweight");
  dbias.expect_close(2e-3, "dbias");
}

}  // namespace
}  // namespace brisk
