#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "ops/optimizer/parts.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

class PartsOnGpu : public testing::OnGpu {};

template <typename Number>
void expect_bits_of_reference(int64_t parts, int64_t count) {
  std::vector<Number> values, expected(static_cast<size_t>(count)), got(static_cast<size_t>(count));
  for (int64_t i = 0; i < parts * count; ++i) {
    const uint64_t random = mix64(static_cast<uint64_t>(i));
    values.push_back(std::ldexp(static_cast<Number>(random >> 40) - Number{8e6}, static_cast<int>(random % 40) - 20));
  }
  ref::sum_parts(values.data(), parts, count, expected.data());
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(Number));
  Buffer gpu(cuda_device(), bytes);
  cuda_device().copy_in(gpu.data(), values.data(), bytes);
  cuda::sum_parts(static_cast<const Number*>(gpu.data()), parts, count, static_cast<Number*>(gpu.data()));
  cuda_device().copy_out(got.data(), gpu.data(), static_cast<int64_t>(got.size() * sizeof(Number)));
  EXPECT_EQ(got, expected) << parts << " parts of " << count;
}

TEST_F(PartsOnGpu, AreSummedToTheBitsOfTheReference) {
  for (const int64_t parts : {1, 2, 3, 4, 7, 8, 64}) {
    for (const int64_t count : {1, 5, 4096, 1'000'003}) expect_bits_of_reference<float>(parts, count);
    expect_bits_of_reference<double>(parts, 5);
  }
}

TEST_F(PartsOnGpu, AreAddedCopiedAndCleared) {
  constexpr int64_t kCount = 100'001;
  testing::GpuMatrix values(1, kCount, DType::f32, 1), sum(1, kCount, DType::f32, 2);
  std::vector<float> expected(kCount);
  for (int64_t i = 0; i < kCount; ++i)
    expected[static_cast<size_t>(i)] = values.host().get(0, i) + sum.host().get(0, i);
  cuda::add_floats(values.at(testing::Side::gpu).f32(), sum.at(testing::Side::gpu).f32(), kCount);
  const testing::Matrix& added = sum.gpu();
  for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(added.get(0, i), expected[static_cast<size_t>(i)]) << i;
  cuda::copy_bytes(sum.at(testing::Side::gpu).data, values.at(testing::Side::gpu).data, 4 * kCount);
  cuda::clear_bytes(sum.at(testing::Side::gpu).data, 4 * 1000);
  const testing::Matrix& copied = values.gpu();
  const testing::Matrix& cleared = sum.gpu();
  for (int64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(copied.get(0, i), expected[static_cast<size_t>(i)]) << i;
    ASSERT_EQ(cleared.get(0, i), i < 1000 ? 0 : expected[static_cast<size_t>(i)]) << i;
  }
}

}  // namespace
}  // namespace brisk
