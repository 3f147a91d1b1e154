// Products in eight bits on a GPU: the bytes against a software rounding, and linear against the reference of what
// those bytes say.
#include "ops/gemm/cuda/fp8_cuda.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/linear/linear.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::GpuRows;
using testing::OnGpu;
using testing::Side;

class CudaFp8 : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (!IsSkipped() && cuda_device().compute_capability() < 89) {
      GTEST_SKIP() << "the GPU has no products in eight bits: compute capability "
                   << cuda_device().compute_capability();
    }
  }
};

float most_of(DType type) { return type == DType::e4m3 ? 448.0f : 57344.0f; }

// The nearest number of the format, to even, at most its largest.
float rounded_to(DType type, float value) {
  if (value == 0 || std::isnan(value)) return value;
  const int fraction = type == DType::e4m3 ? 3 : 2, least = type == DType::e4m3 ? -6 : -14;
  const double step = std::ldexp(1.0, std::max(std::ilogb(value), least) - fraction);
  const double most = most_of(type);
  return static_cast<float>(std::clamp(std::nearbyint(value / step) * step, -most, most));
}

float decoded(DType type, uint8_t byte) {
  const int fraction_bits = type == DType::e4m3 ? 3 : 2, bias = type == DType::e4m3 ? 7 : 15;
  const int fraction = byte & ((1 << fraction_bits) - 1), exponent = (byte & 0x7F) >> fraction_bits;
  const double size = exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                    : std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  return static_cast<float>((byte & 0x80) != 0 ? -size : size);
}

float factor_of(const testing::Matrix& m, DType type) {
  float largest = 0;
  for (int64_t r = 0; r < m.rows(); ++r) {
    for (int64_t c = 0; c < m.cols(); ++c) largest = std::max(largest, std::fabs(m.get(r, c)));
  }
  return most_of(type) / std::max(largest, 1e-30f);
}

// What eight bits leave of a matrix, as f32.
testing::Matrix& leave(const testing::Matrix& m, DType type, testing::Matrix& out) {
  const float factor = factor_of(m, type);
  for (int64_t r = 0; r < m.rows(); ++r) {
    for (int64_t c = 0; c < m.cols(); ++c) out.set(r, c, rounded_to(type, m.get(r, c) * factor) / factor);
  }
  return out;
}

TEST_F(CudaFp8, BytesAreTheNearestOfTheFormat) {
  for (const DType from : {DType::f32, DType::bf16}) {
    for (const DType type : {DType::e4m3, DType::e5m2}) {
      for (const auto& [rows, cols, spare] :
           std::vector<std::array<int64_t, 3>>{{1, 16, 0}, {37, 48, 8}, {130, 272, 0}, {64, 128, 0}, {16, 1040, 16}}) {
        SCOPED_TRACE(fmt::format("[{}, {}] {} as {}", rows, cols, dtype_name(from), dtype_name(type)));
        GpuMatrix matrix(rows, cols, from, 7, 3.0, cols + spare);
        const int64_t padded = (rows + 15) / 16 * 16;
        const Buffer along(cuda_device(), rows * cols), across(cuda_device(), padded * cols),
            numbers(cuda_device(), 4096);
        auto* scale = static_cast<float*>(numbers.data());
        cuda::to_fp8({.from = matrix.at(Side::gpu),
                      .type = type,
                      .rows = along.data(),
                      .columns = across.data(),
                      .scale = scale,
                      .partial = scale + 1});
        std::vector<uint8_t> bytes(static_cast<size_t>(rows * cols)), turned(static_cast<size_t>(padded * cols));
        float got_scale = 0;
        cuda_device().copy_out(bytes.data(), along.data(), std::ssize(bytes));
        cuda_device().copy_out(turned.data(), across.data(), std::ssize(turned));
        cuda_device().copy_out(&got_scale, scale, sizeof(float));
        const float factor = factor_of(matrix.host(), type);
        EXPECT_NEAR(got_scale * factor, 1, 1e-6);
        for (int64_t r = 0; r < padded; ++r) {
          for (int64_t c = 0; c < cols; ++c) {
            const uint8_t across_byte = turned[static_cast<size_t>(c * padded + r)];
            if (r >= rows) {
              ASSERT_EQ(across_byte, 0) << r << ", " << c;
              continue;
            }
            const uint8_t byte = bytes[static_cast<size_t>(r * cols + c)];
            ASSERT_EQ(byte, across_byte) << r << ", " << c;
            ASSERT_EQ(decoded(type, byte), rounded_to(type, matrix.host().get(r, c) * factor)) << r << ", " << c;
          }
        }
      }
    }
  }
}

struct Fp8Case {
  std::vector<int> lengths;
  int64_t inputs, outputs;
  Activation activation = Activation::none;
  bool residual = false, adds = false;
  float dropout = 0;
};

struct Fp8Linear {
  explicit Fp8Linear(const Fp8Case& c)
      : of(c),
        rows(c.lengths, 2),
        n(rows.rows()),
        y_type(c.residual ? DType::f32 : DType::bf16),
        x(n, c.inputs, DType::bf16, 1),
        weight(c.outputs, c.inputs, DType::bf16, 2, 1 / std::sqrt(static_cast<double>(c.inputs))),
        bias(1, c.outputs, DType::f32, 3),
        residual(n, c.outputs, y_type, 4),
        before(n, c.outputs, DType::bf16, 5, 0),
        y(n, c.outputs, y_type, 6, 0),
        dy(n, c.outputs, y_type, 7),
        scratch(n, c.outputs, DType::bf16, 8, 0),
        dx(n, c.inputs, DType::bf16, 9, 0.5),
        dweight(c.outputs, c.inputs, DType::f32, 10),
        dbias(1, c.outputs, DType::f32, 11) {}
  bool scaled() const { return of.activation != Activation::none || of.dropout > 0; }
  LinearForward forward(Side side) {
    LinearForward op;
    op.x = x.at(side);
    op.weight = weight.at(side);
    op.bias = bias.at(side);
    op.activation = of.activation;
    if (of.activation != Activation::none) op.before = before.at(side);
    op.dropout = {.probability = of.dropout, .key = 99};
    op.rows = rows.at(side);
    if (of.residual) op.residual = residual.at(side);
    op.y = y.at(side);
    op.products = GemmFormat::fp8;
    return op;
  }
  LinearBackward backward(Side side) {
    LinearBackward op;
    op.dy = dy.at(side);
    op.x = x.at(side);
    op.weight = weight.at(side);
    op.activation = of.activation;
    if (of.activation != Activation::none) op.before = before.at(side);
    op.dropout = {.probability = of.dropout, .key = 99};
    op.rows = rows.at(side);
    if (scaled()) op.scratch = scratch.at(side);
    op.dx = dx.at(side);
    op.dweight = dweight.at(side);
    op.dbias = dbias.at(side);
    op.dx_adds = op.dweight_adds = op.dbias_adds = of.adds;
    op.products = GemmFormat::fp8;
    return op;
  }
  Fp8Case of;
  GpuRows rows;
  int64_t n;
  DType y_type;
  GpuMatrix x, weight, bias, residual, before, y, dy, scratch, dx, dweight, dbias;
};

// c (+)= a b, or with `across` a^T b, in double.
void add_product(const testing::Matrix& a, const testing::Matrix& b, bool across, bool adds, testing::Matrix& c) {
  for (int64_t i = 0; i < c.rows(); ++i) {
    for (int64_t j = 0; j < c.cols(); ++j) {
      double sum = adds ? c.get(i, j) : 0;
      for (int64_t q = 0; q < b.rows(); ++q) sum += double{across ? a.get(q, i) : a.get(i, q)} * b.get(q, j);
      c.set(i, j, static_cast<float>(sum));
    }
  }
}

TEST_F(CudaFp8, LinearIsTheReferenceOfItsRoundedOperands) {
  const std::vector<Fp8Case> cases = {{{40, 1, 7}, 64, 96},
                                      {{33}, 256, 512, Activation::gelu_tanh},
                                      {{33, 64}, 128, 80, Activation::none, true},
                                      {{70}, 128, 64, Activation::none, true, true},
                                      {{20, 9}, 48, 64, Activation::silu, false, true, 0.1f},
                                      {{5}, 768, 2304}};
  for (const Fp8Case& c : cases) {
    SCOPED_TRACE(fmt::format("{} -> {}, activation {}, residual {}, adds {}", c.inputs, c.outputs,
                             static_cast<int>(c.activation), c.residual, c.adds));
    Fp8Linear s(c);
    testing::Matrix x(s.n, c.inputs), weight(c.outputs, c.inputs);
    leave(s.x.host(), DType::e4m3, x);
    leave(s.weight.host(), DType::e4m3, weight);
    // The reference multiplies in fp32 what eight bits left.
    LinearForward reference = s.forward(Side::host);
    reference.x = x;
    reference.weight = weight;
    ref::linear_forward(reference);
    cuda::linear_forward(s.forward(Side::gpu));
    s.y.expect_close(1e-2, "y");
    s.before.expect_close(1e-2, "before");

    s.before.take_reference();
    cuda::linear_backward(s.backward(Side::gpu));
    const testing::Matrix& du = s.scaled() ? s.scratch.gpu() : s.dy.host();
    testing::Matrix gradient(s.n, c.outputs);
    leave(du, DType::e5m2, gradient);
    add_product(gradient, weight, false, c.adds, s.dx.host());
    add_product(gradient, x, true, c.adds, s.dweight.host());
    s.dx.expect_close(1e-2, "dx");
    s.dweight.expect_close(1e-3, "dweight");
    // Sums are of what was not rounded.
    for (int64_t j = 0; j < c.outputs; ++j) {
      double sum = c.adds ? s.dbias.host().get(0, j) : 0;
      for (int64_t i = 0; i < s.n; ++i) sum += du.get(i, j);
      s.dbias.host().set(0, j, static_cast<float>(sum));
    }
    s.dbias.expect_close(8e-3, "dbias");
  }
}

TEST_F(CudaFp8, MultipliesTheInputsGradientByGelusSlope) {
  Fp8Linear s({{64}, 128, 64});
  GpuMatrix slope_at(s.n, 128, DType::bf16, 21), apart(s.n, 128, DType::bf16, 22);
  LinearBackward op = s.backward(Side::gpu);
  op.dx = apart.at(Side::gpu);
  cuda::linear_backward(op);
  op.dx = s.dx.at(Side::gpu);
  op.dx_gelu = slope_at.at(Side::gpu);
  for (int again = 0; again < 2; ++again) cuda::linear_backward(op);  // chosen by time, then known
  const testing::Matrix& plain = apart.gpu();
  for (int64_t r = 0; r < s.n; ++r) {
    for (int64_t c = 0; c < 128; ++c) {
      s.dx.host().set(r, c, plain.get(r, c) * activate_slope(Activation::gelu_tanh, slope_at.host().get(r, c)));
    }
  }
  s.dx.expect_close(1e-2, "dx");
}

TEST_F(CudaFp8, ShapesThatDoNotFitAreBf16) {
  for (const auto& [inputs, outputs] : std::vector<std::pair<int64_t, int64_t>>{{33, 64}, {64, 50}, {8, 24}}) {
    Fp8Linear eight({{40}, inputs, outputs}), sixteen({{40}, inputs, outputs});
    cuda::linear_forward(eight.forward(Side::gpu));
    cuda::linear_backward(eight.backward(Side::gpu));
    LinearForward forward = sixteen.forward(Side::gpu);
    LinearBackward backward = sixteen.backward(Side::gpu);
    forward.products = backward.products = GemmFormat::own;
    cuda::linear_forward(forward);
    cuda::linear_backward(backward);
    testing::expect_close(eight.y.gpu(), sixteen.y.gpu(), 0, "y");
    testing::expect_close(eight.dx.gpu(), sixteen.dx.gpu(), 0, "dx");
    testing::expect_close(eight.dweight.gpu(), sixteen.dweight.gpu(), 0, "dweight");
  }
}

TEST_F(CudaFp8, GivesTheSameBitsTwice) {
  const Fp8Case c{{300, 212}, 768, 3072, Activation::gelu_tanh};
  Fp8Linear first(c), second(c);
  for (Fp8Linear* s : {&first, &second}) {
    cuda::linear_forward(s->forward(Side::gpu));
    cuda::linear_backward(s->backward(Side::gpu));
  }
  testing::expect_close(first.y.gpu(), second.y.gpu(), 0, "y");
  testing::expect_close(first.dx.gpu(), second.dx.gpu(), 0, "dx");
  testing::expect_close(first.dweight.gpu(), second.dweight.gpu(), 0, "dweight");
}

TEST_F(CudaFp8, WhatForwardKeepsIsWhatBackwardWouldMake) {
  for (const Fp8Case& c : {Fp8Case{{37, 5}, 64, 96}, Fp8Case{{130}, 256, 128, Activation::gelu_tanh}}) {
    Fp8Linear keeping(c), making(c);
    const int64_t bytes = fp8_operand_bytes(keeping.n + 100, c.inputs, c.outputs);  // a micro-batch is seldom full
    const Buffer kept(cuda_device(), bytes);
    LinearForward forward = keeping.forward(Side::gpu);
    LinearBackward backward = keeping.backward(Side::gpu);
    forward.fp8_operands = backward.fp8_operands = matrix(kept.data(), DType::e4m3, 1, bytes);
    cuda::linear_forward(forward);
    cuda::linear_backward(backward);
    cuda::linear_forward(making.forward(Side::gpu));
    cuda::linear_backward(making.backward(Side::gpu));
    testing::expect_close(keeping.y.gpu(), making.y.gpu(), 0, "y");
    testing::expect_close(keeping.dx.gpu(), making.dx.gpu(), 0, "dx");
    testing::expect_close(keeping.dweight.gpu(), making.dweight.gpu(), 0, "dweight");
    testing::expect_close(keeping.dbias.gpu(), making.dbias.gpu(), 0, "dbias");
  }
}

TEST_F(CudaFp8, ANumberThatIsNoneStaysNone) {
  for (const float strange : {NAN, INFINITY}) {
    Fp8Linear s({{20}, 64, 64});
    s.x.host().set(3, 5, strange);
    s.x.take_reference();
    cuda::linear_forward(s.forward(Side::gpu));
    EXPECT_TRUE(std::isnan(s.y.gpu().get(3, 0))) << strange;
  }
}

}  // namespace
}  // namespace brisk
