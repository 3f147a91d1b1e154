#include "ops/grouped_linear/grouped_linear.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/runtime.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;

struct Problem {
  int64_t rows = 37;
  GroupedLinearShape shape;
  DType x_type = DType::f32, y_type = DType::f32;
  bool bias = true, adds = false;
};

GroupedLinearShape shape_of(int64_t groups, int64_t parts, int64_t outputs, GroupInputs inputs) {
  return {groups, parts, outputs, inputs};
}

struct Layer {
  explicit Layer(const Problem& p)
      : problem(p),
        inputs(p.shape.groups * p.shape.inputs.inputs),
        outputs(p.shape.parts * p.shape.groups * p.shape.outputs),
        x(p.rows, inputs, p.x_type, 1, 1.0, inputs + 16),
        weight(outputs, p.shape.inputs.inputs, DType::f32, 2),
        bias(1, outputs, DType::f32, 3),
        dy(p.rows, outputs, p.y_type, 4),
        y(p.rows, outputs, p.y_type, 0, 0),
        dx(p.rows, inputs, p.x_type, 5),
        dweight(outputs, p.shape.inputs.inputs, DType::f32, 6),
        dbias(1, outputs, DType::f32, 7),
        scratch(kGroupedLinearParts, outputs * (p.shape.inputs.inputs + 1)) {}

  GroupedLinearForward forward() const { return {problem.shape, x, weight, problem.bias ? bias.view() : Tensor{}, y}; }
  GroupedLinearBackward backward() const {
    GroupedLinearBackward op{.shape = problem.shape, .dy = dy, .x = x, .weight = weight, .dx = dx};
    op.dx_adds = op.dweight_adds = op.dbias_adds = problem.adds;
    op.dweight = dweight;
    if (problem.bias) op.dbias = dbias;
    op.scratch = scratch;
    return op;
  }

  Problem problem;
  int64_t inputs, outputs;
  Matrix x, weight, bias, dy, y, dx, dweight, dbias, scratch;
};

void expect_same_as_reference(const Problem& problem) {
  const double tolerance = problem.x_type == DType::f32 && problem.y_type == DType::f32 ? 2e-5 : 8e-3;
  Layer expected(problem);
  ref::grouped_linear_forward(expected.forward());
  ref::grouped_linear_backward(expected.backward());
  for_each_isa([&](Isa) {
    Layer got(problem);
    cpu::grouped_linear_forward(got.forward());
    cpu::grouped_linear_backward(got.backward());
    expect_close(got.y, expected.y, tolerance, "y");
    expect_close(got.dx, expected.dx, tolerance, "dx");
    expect_close(got.dweight, expected.dweight, 2e-5, "dweight");
    expect_close(got.dbias, expected.dbias, 2e-5, "dbias");
  });
}

TEST(GroupedLinear, IsALinearLayerOfEachGroup) {
  // Two groups of two inputs and one output, in two parts.
  const Problem problem{.rows = 1, .shape = shape_of(2, 2, 1, {.inputs = 2}), .bias = false};
  Layer layer(problem);
  for (int64_t c = 0; c < 4; ++c) layer.x.set(0, c, static_cast<float>(c + 1));
  for (int64_t r = 0; r < 4; ++r) {
    layer.weight.set(r, 0, static_cast<float>(r + 1));
    layer.weight.set(r, 1, 0);
  }
  cpu::grouped_linear_forward(layer.forward());
  EXPECT_EQ(layer.y.get(0, 0), 1 * 1);
  EXPECT_EQ(layer.y.get(0, 1), 2 * 3);
  EXPECT_EQ(layer.y.get(0, 2), 3 * 1);
  EXPECT_EQ(layer.y.get(0, 3), 4 * 3);
}

TEST(GroupedLinear, ReadsTilesOfTheRowAsAMatrix) {
  const GroupInputs blocks{.inputs = 4, .matrix_cols = 8, .tile_cols = 2};
  const std::vector<std::vector<int64_t>> expected = {{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}};
  for (int64_t g = 0; g < 4; ++g) {
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(blocks.column(g, i), expected[static_cast<size_t>(g)][static_cast<size_t>(i)]);
      EXPECT_EQ(blocks.column(g + 4, i), 16 + blocks.column(g, i));
    }
  }
}

TEST(GroupedLinear, MatchesTheReference) {
  for (const DType x_type : {DType::f32, DType::bf16}) {
    for (const DType y_type : {DType::f32, DType::bf16}) {
      for (const bool adds : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "types " << static_cast<int>(x_type) << static_cast<int>(y_type));
        const auto check = [&](int64_t rows, const GroupedLinearShape& shape, bool bias) {
          expect_same_as_reference(
              {.rows = rows, .shape = shape, .x_type = x_type, .y_type = y_type, .bias = bias, .adds = adds});
        };
        check(37, shape_of(16, 3, 4, {.inputs = 4}), true);
        check(301, shape_of(16, 1, 4, {.inputs = 4}), true);
        check(37, shape_of(16, 3, 4, {.inputs = 4, .matrix_cols = 8, .tile_cols = 2}), true);
        check(5, shape_of(3, 2, 5, {.inputs = 7}), false);
        check(0, shape_of(16, 3, 4, {.inputs = 4}), true);
      }
    }
  }
}

TEST(GroupedLinear, AnyNumberOfThreadsGivesTheSameBits) {
  const Problem problem{.rows = 1111, .shape = shape_of(16, 3, 4, {.inputs = 4})};
  const ThreadsScope one(1);
  Layer alone(problem);
  cpu::grouped_linear_backward(alone.backward());
  const ThreadsScope three(3);
  Layer together(problem);
  cpu::grouped_linear_backward(together.backward());
  for (int64_t r = 0; r < alone.outputs; ++r) {
    for (int64_t i = 0; i < 4; ++i) ASSERT_EQ(alone.dweight.get(r, i), together.dweight.get(r, i));
    ASSERT_EQ(alone.dbias.get(0, r), together.dbias.get(0, r));
  }
}

}  // namespace
}  // namespace brisk
