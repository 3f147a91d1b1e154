#include "doctor/plan/shape_for_time.h"

#include <gtest/gtest.h>

namespace brisk {
namespace {

// Tokens/s as parameters and compute have it: 6 N FLOP a token, 120 GFLOP/s.
std::vector<ShapeCandidate> candidates() {
  std::vector<ShapeCandidate> all;
  for (int64_t n = 1; n <= 1024; n *= 2)
    all.push_back({n, 64 * n, 1'000'000 * n, 120e9 / (6e6 * static_cast<double>(n))});
  return all;
}

TEST(ShapeForTime, TwentyTokensForEachParameter) {
  // 20 000 tokens/s of 1M parameters: 20M tokens in 1000 s.
  const auto shape = shape_for_time(candidates(), 1000, 1e12);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->parameters, 1'000'000);
  EXPECT_DOUBLE_EQ(shape->tokens, 20e6);
  EXPECT_FALSE(shape->data_is_short);
  // Parameters and tokens grow together: sixteen times the time, four times the model.
  EXPECT_EQ(shape_for_time(candidates(), 16000, 1e12)->parameters, 4'000'000);
}

TEST(ShapeForTime, DataThatRepeatsCountsForFourEpochs) {
  const auto shape = shape_for_time(candidates(), 1e6, 20e6);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->parameters, 4'000'000);  // 80M useful tokens
  EXPECT_TRUE(shape->data_is_short);
}

TEST(ShapeForTime, NothingToChooseFrom) { EXPECT_FALSE(shape_for_time({}, 60, 1e6)); }

TEST(UsualShapes, HaveGpt2AmongThem) {
  bool found = false;
  for (const LayersOfWidth& shape : usual_shapes()) found |= shape.layers == 12 && shape.width == 768;
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace brisk
