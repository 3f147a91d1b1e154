#include "ops/linear/linear.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/runtime.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;
using testing::Ragged;

struct Case {
  int64_t inputs, outputs;
  DType type = DType::f32;
  Activation activation = Activation::none;
  float dropout = 0;
  bool bias = true;
  bool residual = false;
};

const std::vector<int> kLengths = {40, 1, 7, 55};

// Everything one linear reads and writes, forward and backward.
struct Setting {
  explicit Setting(const Case& c, const std::vector<int>& lengths = kLengths)
      : ragged(lengths),
        n(ragged.view().rows),
        x(n, c.inputs, c.type, 1),
        weight(c.outputs, c.inputs, c.type, 2, 1 / std::sqrt(static_cast<double>(c.inputs)), c.inputs + 8),
        bias(1, c.outputs, DType::f32, 3),
        residual(n, c.outputs, c.type, 4),
        before(n, c.outputs, c.type, 5, 0),
        y(n, c.outputs, c.type, 6, 0, c.outputs + 3),
        dy(n, c.outputs, c.type, 7),
        scratch(n, c.outputs, c.type, 8, 0),
        dx(n, c.inputs, c.type, 9),
        dweight(c.outputs, c.inputs, DType::f32, 10),
        dbias(1, c.outputs, DType::f32, 11) {
    forward = {.x = x,
               .weight = weight,
               .bias = {},
               .activation = c.activation,
               .before = {},
               .dropout = {},
               .rows = ragged.view(),
               .residual = {},
               .y = y};
    if (c.bias) forward.bias = bias;
    if (c.activation != Activation::none) forward.before = before;
    forward.dropout = {.probability = c.dropout, .key = 99};
    if (c.residual) forward.residual = residual;
    backward.dy = dy;
    backward.x = x;
    backward.weight = weight;
    backward.activation = c.activation;
    backward.before = forward.before;
    backward.dropout = forward.dropout;
    backward.rows = ragged.view();
    if (c.activation != Activation::none || c.dropout > 0) backward.scratch = scratch;
    backward.dx = dx;
    backward.dweight = dweight;
    if (c.bias) backward.dbias = dbias;
  }
  Ragged ragged;
  int64_t n;
  Matrix x, weight, bias, residual, before, y, dy, scratch, dx, dweight, dbias;
  LinearForward forward;
  LinearBackward backward;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType type : {DType::f32, DType::bf16}) {
    all.push_back({64, 96, type});
    all.push_back({33, 50, type, Activation::gelu_tanh});
    all.push_back({33, 50, type, Activation::gelu_erf, 0.2f});
    all.push_back({20, 70, type, Activation::silu, 0.0f, false});
    all.push_back({48, 40, type, Activation::tanh, 0.1f});
    all.push_back({20, 70, type, Activation::relu, 0.5f, false, true});
    all.push_back({100, 64, type, Activation::none, 0.1f, true, true});
    all.push_back({1, 1, type});
  }
  return all;
}

TEST(Linear, AgreesWithTheReferenceForwardAndBackward) {
  for_each_isa([&](Isa) {
    for (const Case& c : cases()) {
      for (const bool adds : {false, true}) {
        Setting fast(c), plain(c);
        cpu::linear_forward(fast.forward);
        ref::linear_forward(plain.forward);
        const double tolerance = c.type == DType::bf16 ? 8e-3 : 1e-5;
        SCOPED_TRACE(fmt::format("{} -> {}, {}, activation {}, dropout {}", c.inputs, c.outputs, dtype_name(c.type),
                                 static_cast<int>(c.activation), c.dropout));
        expect_close(fast.y, plain.y, tolerance, "y");
        expect_close(fast.before, plain.before, tolerance, "before");
        for (Setting* s : {&fast, &plain})
          s->backward.dx_adds = s->backward.dweight_adds = s->backward.dbias_adds = adds;
        fast.backward.before = plain.backward.before;  // the same starting point: relu's slope jumps
        cpu::linear_backward(fast.backward);
        ref::linear_backward(plain.backward);
        expect_close(fast.dx, plain.dx, tolerance, "dx");
        expect_close(fast.dweight, plain.dweight, tolerance, "dweight");
        expect_close(fast.dbias, plain.dbias, tolerance, "dbias");
      }
    }
  });
}

TEST(Linear, WorksOnNoRowsAtAll) {
  for_each_isa([&](Isa) {
    Setting s({8, 24, DType::f32, Activation::gelu_tanh}, {0});
    cpu::linear_forward(s.forward);
    cpu::linear_backward(s.backward);
    expect_close(s.dweight, Matrix(24, 8, DType::f32, 1, 0), 0, "dweight");
    expect_close(s.dbias, Matrix(1, 24, DType::f32, 1, 0), 0, "dbias");
  });
}

TEST(Linear, LeavesOutWhatNobodyWants) {
  Setting s({16, 24});
  s.backward.dweight = {};
  s.backward.dbias = {};
  cpu::linear_backward(s.backward);
  expect_close(s.dweight, Matrix(24, 16, DType::f32, 10), 0, "a frozen weight's gradient");
}

TEST(Linear, GivesOneThreadsResultWithTwo) {
  const int threads = thread_pool().size();
  const Case c{64, 96, DType::f32, Activation::gelu_tanh, 0.1f};
  Setting one(c), two(c);
  Runtime::current().set_threads(1);
  cpu::linear_forward(one.forward);
  cpu::linear_backward(one.backward);
  Runtime::current().set_threads(2);
  cpu::linear_forward(two.forward);
  cpu::linear_backward(two.backward);
  Runtime::current().set_threads(threads);
  expect_close(one.y, two.y, 0, "y");
  expect_close(one.dx, two.dx, 0, "dx");
  expect_close(one.dweight, two.dweight, 0, "dweight");
  expect_close(one.dbias, two.dbias, 1e-6, "dbias");  // sums of each thread's rows
}

// The reference itself: directional derivatives of sum(dy * y) against the gradients, in f32 with a step of 1e-2.
TEST(LinearReference, HasTheGradientsOfFiniteDifferences) {
  for (const Case& c : cases()) {
    if (c.type == DType::bf16 || c.activation == Activation::relu) continue;  // too coarse; not smooth
    Setting s(c, {5, 4});
    ref::linear_forward(s.forward);
    ref::linear_backward(s.backward);
    const auto objective = [&] {
      ref::linear_forward(s.forward);
      double sum = 0;
      for (int64_t i = 0; i < s.n; ++i) {
        for (int64_t o = 0; o < c.outputs; ++o) sum += double{s.dy.get(i, o)} * s.y.get(i, o);
      }
      return sum;
    };
    const auto check = [&](Matrix& values, const Matrix& gradient, const char* what) {
      for (int64_t i = 0; i < std::min<int64_t>(values.rows(), 3); ++i) {
        for (int64_t j = 0; j < std::min<int64_t>(values.cols(), 3); ++j) {
          EXPECT_NEAR(testing::slope_of(values, i, j, 1e-2f, objective), gradient.get(i, j),
                      2e-3 * (1 + std::fabs(gradient.get(i, j))))
              << what;
        }
      }
    };
    check(s.x, s.dx, "dx");
    check(s.weight, s.dweight, "dweight");
    if (c.bias) check(s.bias, s.dbias, "dbias");
  }
}

}  // namespace
}  // namespace brisk
