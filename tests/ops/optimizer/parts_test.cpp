#include "ops/optimizer/parts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/sum_tree.h"

namespace brisk {
namespace {

// Numbers whose sum depends on the order they are added in.
template <typename Number>
std::vector<Number> numbers(int64_t count, uint64_t seed) {
  std::vector<Number> all;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t random = mix64(seed << 32 ^ static_cast<uint64_t>(i));
    all.push_back(std::ldexp(static_cast<Number>(random >> 40) - Number{8e6}, static_cast<int>(random % 40) - 20));
  }
  return all;
}

template <typename Number>
void expect_order_of_tree() {
  constexpr int64_t kCount = 37;
  for (int64_t parts = 1; parts <= 17; ++parts) {
    const std::vector<Number> values = numbers<Number>(parts * kCount, static_cast<uint64_t>(parts));
    std::vector<Number> expected = values, sum(kCount);
    sum_tree(parts, [&](int64_t a, int64_t b) {
      for (int64_t i = 0; i < kCount; ++i)
        expected[static_cast<size_t>(a * kCount + i)] += expected[static_cast<size_t>(b * kCount + i)];
    });
    expected.resize(kCount);
    ref::sum_parts(values.data(), parts, kCount, sum.data());
    EXPECT_EQ(sum, expected) << parts << " parts";
  }
}

TEST(SumOfParts, HasTheOrderOfTheTree) {
  expect_order_of_tree<float>();
  expect_order_of_tree<double>();
}

TEST(SumOfParts, MayReplaceAPart) {
  std::vector<float> values = numbers<float>(30, 5), expected(10);
  ref::sum_parts(values.data(), 3, 10, expected.data());
  ref::sum_parts(values.data(), 3, 10, values.data() + 10);
  EXPECT_EQ(std::vector<float>(values.begin() + 10, values.begin() + 20), expected);
}

}  // namespace
}  // namespace brisk
