// linear and linear_cross_entropy on a GPU against their references.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

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

using CudaLinear = OnGpu;
using CudaLinearCrossEntropy = OnGpu;

struct LinearCase {
  int64_t inputs, outputs;
  DType type = DType::f32;
  Activation activation = Activation::none;
  float dropout = 0;
  bool bias = true;
  bool residual = false;
  DType residual_type = DType::f32;  // and of y and dy, where there is one
  int64_t y_spare = 0;               // columns between y's rows
};

struct GpuLinear {
  explicit GpuLinear(const LinearCase& c, const std::vector<int>& lengths = {40, 1, 7, 55})
      : of(c),
        rows(lengths, 3),
        n(rows.rows()),
        y_type(c.residual ? c.residual_type : c.type),
        x(n, c.inputs, c.type, 1),
        weight(c.outputs, c.inputs, c.type, 2, 1 / std::sqrt(static_cast<double>(c.inputs))),
        bias(1, c.outputs, DType::f32, 3),
        residual(n, c.outputs, y_type, 4),
        before(n, c.outputs, c.type, 5, 0),
        y(n, c.outputs, y_type, 6, 0, c.outputs + c.y_spare),
        dy(n, c.outputs, y_type, 7),
        scratch(n, c.outputs, c.type, 8, 0),
        dx(n, c.inputs, c.type, 9),
        dweight(c.outputs, c.inputs, DType::f32, 10),
        dbias(1, c.outputs, DType::f32, 11) {}

  LinearForward forward(Side side) {
    LinearForward op;
    op.x = x.at(side);
    op.weight = weight.at(side);
    if (of.bias) op.bias = bias.at(side);
    op.activation = of.activation;
    if (of.activation != Activation::none) op.before = before.at(side);
    op.dropout = {.probability = of.dropout, .key = 99};
    op.rows = rows.at(side);
    if (of.residual) op.residual = residual.at(side);
    op.y = y.at(side);
    return op;
  }
  LinearBackward backward(Side side, bool adds) {
    LinearBackward op;
    op.dy = dy.at(side);
    op.x = x.at(side);
    op.weight = weight.at(side);
    op.activation = of.activation;
    if (of.activation != Activation::none) op.before = before.at(side);
    op.dropout = {.probability = of.dropout, .key = 99};
    op.rows = rows.at(side);
    if (of.activation != Activation::none || of.dropout > 0) op.scratch = scratch.at(side);
    op.dx = dx.at(side);
    op.dweight = dweight.at(side);
    if (of.bias) op.dbias = dbias.at(side);
    op.dx_adds = op.dweight_adds = op.dbias_adds = adds;
    return op;
  }

  LinearCase of;
  GpuRows rows;
  int64_t n;
  DType y_type;
  GpuMatrix x, weight, bias, residual, before, y, dy, scratch, dx, dweight, dbias;
};

std::vector<LinearCase> linear_cases() {
  std::vector<LinearCase> all;
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    all.push_back({64, 96, type});
    all.push_back({768, 2304, type});
    all.push_back({64, 256, type, Activation::gelu_tanh});
    all.push_back({33, 50, type, Activation::gelu_tanh});
    all.push_back({33, 50, type, Activation::gelu_erf, 0.2f});
    all.push_back({64, 128, type, Activation::gelu_erf});
    all.push_back({20, 70, type, Activation::silu, 0.0f, false});
    all.push_back({48, 40, type, Activation::tanh, 0.1f});
    all.push_back({20, 70, type, Activation::relu, 0.5f, false, true});
    all.push_back({128, 64, type, Activation::none, 0.0f, true, true});
    all.push_back({128, 64, type, Activation::none, 0.1f, true, true});
    all.push_back({128, 64, type, Activation::none, 0.1f, true, true, type == DType::f16 ? DType::f16 : DType::bf16});
    all.push_back({100, 64, type, Activation::none, 0.0f, false, true, DType::f32, 3});
    all.push_back({1, 1, type});
  }
  all.push_back({8, 131072, DType::bf16});  // one block has all rows: more than its threads read at once
  return all;
}

std::string name_of(const LinearCase& c) {
  return fmt::format("{} -> {}, {}, activation {}, dropout {}, bias {}, residual {} {}", c.inputs, c.outputs,
                     dtype_name(c.type), static_cast<int>(c.activation), c.dropout, c.bias, c.residual,
                     dtype_name(c.residual_type));
}

TEST_F(CudaLinear, AgreesWithTheReferenceForwardAndBackward) {
  for (const LinearCase& c : linear_cases()) {
    for (const bool adds : {false, true}) {
      SCOPED_TRACE(name_of(c));
      GpuLinear s(c);
      ref::linear_forward(s.forward(Side::host));
      cuda::linear_forward(s.forward(Side::gpu));
      const bool coarse = c.type != DType::f32 || s.y_type != DType::f32;
      const double tolerance = coarse ? 8e-3 : 1e-5;
      s.y.expect_close(tolerance, "y");
      s.before.expect_close(tolerance, "before");
      s.before.take_reference();  // the same starting point: relu's slope jumps
      ref::linear_backward(s.backward(Side::host, adds));
      cuda::linear_backward(s.backward(Side::gpu, adds));
      s.dx.expect_close(tolerance, "dx");
      s.dweight.expect_close(tolerance, "dweight");
      s.dbias.expect_close(tolerance, "dbias");
    }
  }
}

TEST_F(CudaLinear, GivesTheSameBitsTwice) {
  const LinearCase c{768, 3072, DType::bf16, Activation::gelu_erf, 0.1f};
  GpuLinear first(c, {300, 212}), second(c, {300, 212});
  for (GpuLinear* s : {&first, &second}) {
    cuda::linear_forward(s->forward(Side::gpu));
    cuda::linear_backward(s->backward(Side::gpu, false));
  }
  testing::expect_close(first.y.gpu(), second.y.gpu(), 0, "y");
  testing::expect_close(first.dx.gpu(), second.dx.gpu(), 0, "dx");
  testing::expect_close(first.dweight.gpu(), second.dweight.gpu(), 0, "dweight");
  testing::expect_close(first.dbias.gpu(), second.dbias.gpu(), 0, "dbias");
}

TEST_F(CudaLinear, WorksOnNoRowsAtAll) {
  const GpuMatrix none(0, 8), no_result(0, 24);
  const GpuMatrix weight(24, 8);
  GpuMatrix dweight(24, 8, DType::f32, 3), dbias(1, 24, DType::f32, 4);
  LinearForward forward;
  forward.x = none.at(Side::gpu);
  forward.weight = weight.at(Side::gpu);
  forward.y = no_result.at(Side::gpu);
  cuda::linear_forward(forward);
  LinearBackward backward;
  backward.x = none.at(Side::gpu);
  backward.dy = no_result.at(Side::gpu);
  backward.weight = weight.at(Side::gpu);
  backward.dx = none.at(Side::gpu);
  backward.dweight = dweight.at(Side::gpu);
  backward.dbias = dbias.at(Side::gpu);
  cuda::linear_backward(backward);
  testing::expect_close(dweight.gpu(), testing::Matrix(24, 8, DType::f32, 1, 0), 0, "dweight");
  testing::expect_close(dbias.gpu(), testing::Matrix(1, 24, DType::f32, 1, 0), 0, "dbias");
}

struct LossCase {
  int64_t rows, width, vocabulary;
  DType type = DType::f32;
  float label_smoothing = 0;
  double logit_scale = 1;
  int64_t scratch_rows = 0;  // what the scratch is made for; 0: rows
  bool bias = false, weights = false;
  bool f32_x = false;  // though the weight is of another type
};

struct GpuLoss {
  GpuLoss(const LossCase& c, bool gradient)
      : of(c),
        gradient(gradient),
        x(c.rows, c.width, c.f32_x ? DType::f32 : c.type, 1, c.logit_scale),
        weight(c.vocabulary, c.width, c.type, 2, 1 / std::sqrt(static_cast<double>(c.width))),
        bias(1, c.vocabulary, DType::f32, 6),
        weights(1, c.rows, DType::f32, 8),
        loss(c.rows, 1),
        argmax(c.rows, 1, DType::i32, 1, 0),
        sums(1, 4),
        dx(c.rows, c.width, c.type, 3),
        dweight(c.vocabulary, c.width, DType::f32, 4),
        dbias(1, c.vocabulary, DType::f32, 7),
        scratch(1,
                cuda::linear_cross_entropy_scratch(c.scratch_rows == 0 ? c.rows : c.scratch_rows, c.vocabulary, c.type,
                                                   gradient) /
                    4,
                DType::f32, 5, 0),
        targets(targets_of(c)) {
    for (int64_t i = 0; i < c.rows; ++i) weights.host().set(0, i, 0.25f * static_cast<float>(i % 4));
    weights.take_reference();
  }
  static std::vector<int32_t> targets_of(const LossCase& c) {
    std::vector<int32_t> all;
    for (int64_t i = 0; i < c.rows; ++i) {
      const auto draw = mix64(static_cast<uint64_t>(i)) % static_cast<uint64_t>(c.vocabulary);
      all.push_back(i % 5 == 3 ? -1 : static_cast<int32_t>(draw));
    }
    return all;
  }
  LinearCrossEntropy op(Side side, bool adds) {
    LinearCrossEntropy op;
    op.x = x.at(side);
    op.weight = weight.at(side);
    if (of.bias) op.bias = bias.at(side);
    op.targets = targets.at(side);
    if (of.weights) op.weights = weights.at(side).f32();
    op.label_smoothing = of.label_smoothing;
    op.scale = 0.125f;
    op.loss = loss.at(side);
    op.argmax = argmax.at(side);
    op.sums = sums.at(side);
    op.scratch = scratch.at(side);
    if (gradient) {
      op.dx = dx.at(side);
      op.dweight = dweight.at(side);
      op.dweight_adds = op.dbias_adds = adds;
      if (of.bias) op.dbias = dbias.at(side);
    }
    return op;
  }

  LossCase of;
  bool gradient;
  GpuMatrix x, weight, bias, weights, loss, argmax, sums, dx, dweight, dbias, scratch;
  GpuNumbers targets;
};

std::vector<LossCase> loss_cases() {
  std::vector<LossCase> all;
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    all.push_back({37, 24, 100, type});
    all.push_back({1, 1, 1, type});
    all.push_back({50, 33, 1025, type, 0.1f});
    all.push_back({100, 16, 517, type, 0, 1, 40});  // three chunks, and a short last one
    all.push_back({100, 16, 517, type, 0.1f, 1, 40, true, true});
    all.push_back({70, 40, 2100, type, 0, 1, 0, true, false});
    all.push_back({type == DType::bf16 ? 64 : 16, 64, 50257, type});
    for (const int64_t classes : {2, 3, 10}) all.push_back({33, 48, classes, type, 0, 1, 0, true, classes > 2});
    all.push_back({20, 16, 3000, type, 0.2f, 30});  // logits up to hundreds: e^x alone would overflow
  }
  // Of large vocabularies, by way of exponentials: edges of tiles, chunks, depths that stay and that do not, rows whose
  // target is far below another.
  all.push_back({300, 8, 9001, DType::bf16});
  all.push_back({130, 72, 8321, DType::bf16});
  for (const int64_t width : {512, 768, 1032}) all.push_back({10, width, 8193, DType::bf16});
  all.push_back({1, 64, 8200, DType::bf16});
  all.push_back({400, 16, 12800, DType::bf16, 0, 1, 256, false, true});
  all.push_back({300, 64, 9001, DType::bf16, 0, 8});  // few words have all of the probability
  all.push_back({40, 16, 9000, DType::bf16, 0, 60});
  all.push_back({40, 64, 9000, DType::bf16, 0, 1, 0, false, false, true});
  return all;
}

TEST_F(CudaLinearCrossEntropy, AgreesWithTheReference) {
  for (const LossCase& c : loss_cases()) {
    for (const bool gradient : {true, false}) {
      for (const bool adds : {false, true}) {
        if (adds && !gradient) continue;
        SCOPED_TRACE(fmt::format("{} rows, {} wide, {} tokens, {}, smoothing {}, gradient {}, adds {}", c.rows, c.width,
                                 c.vocabulary, dtype_name(c.type), c.label_smoothing, gradient, adds));
        GpuLoss s(c, gradient);
        ref::linear_cross_entropy(s.op(Side::host, adds));
        cuda::linear_cross_entropy(s.op(Side::gpu, adds));
        // Of a large vocabulary bf16 logits have 8 bits, but for Hopper's own way; ties among them may put the argmax
        // elsewhere.
        const bool coarse = c.type == DType::bf16 && gradient && c.vocabulary > 8192;
        const double tolerance = coarse ? 8e-3 : 1e-5;
        s.loss.expect_close(tolerance, "loss");
        if (!coarse) {
          s.argmax.expect_equal("argmax");
          s.sums.expect_close(tolerance, "sums");
        }
        s.dx.expect_close(c.type == DType::f32 ? 1e-5 : 8e-3, "dx");
        s.dweight.expect_close(c.type == DType::f32 ? 1e-5 : 8e-3, "dweight");
        s.dbias.expect_close(c.type == DType::f32 ? 1e-5 : 8e-3, "dbias");
      }
    }
  }
}

// More rows than one round of Hopper's clusters has, too many for the reference: against the way that takes rows one by
// one, which label smoothing wants, however little of it.
void expect_ways_agree(int64_t width) {
  GpuLoss s({8900, width, 16001, DType::bf16}, true);
  LinearCrossEntropy op = s.op(Side::gpu, false);
  cuda::linear_cross_entropy(op);
  for (GpuMatrix* m : {&s.loss, &s.dx, &s.dweight}) {
    m->take_gpu();
    m->spoil();
  }
  op.label_smoothing = 1e-30f;
  cuda::linear_cross_entropy(op);
  s.loss.expect_close(8e-3, "loss");
  s.dx.expect_close(2e-3, "dx");
  s.dweight.expect_close(2e-3, "dweight");
}
TEST_F(CudaLinearCrossEntropy, WaysAgreeOverManyRows) { expect_ways_agree(64); }
TEST_F(CudaLinearCrossEntropy, WaysAgreeOverManyRowsThatDoNotStay) { expect_ways_agree(704); }

}  // namespace
}  // namespace brisk
