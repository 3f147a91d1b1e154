#include "ops/attention/relative_bias.h"

#include <gtest/gtest.h>

#include <cmath>

namespace brisk {
namespace {

// The formula as it was published, in the f32 that models were trained with.
int64_t published_bucket(int64_t distance, int64_t buckets, int64_t most, bool causal) {
  int64_t base = 0;
  if (!causal) {
    buckets /= 2;
    if (distance > 0) base = buckets;
  }
  const int64_t d = causal ? std::max<int64_t>(0, -distance) : std::abs(distance), exact = buckets / 2;
  if (d < exact) return base + d;
  const float steps = std::log(static_cast<float>(d) / static_cast<float>(exact)) /
                      static_cast<float>(std::log(static_cast<double>(most) / static_cast<double>(exact))) *
                      static_cast<float>(buckets - exact);
  return base + std::min(buckets - 1, exact + static_cast<int64_t>(steps));
}

TEST(RelativeBuckets, AreThoseOfThePublishedFormula) {
  const std::pair<int64_t, int64_t> sizes[] = {{32, 128}, {32, 129}, {8, 10}, {6, 7}, {4, 3}, {128, 1000}, {32, 17}};
  for (const auto& [buckets, most] : sizes) {
    for (const bool causal : {false, true}) {
      const RelativeBuckets table = relative_buckets(buckets, most, causal);
      for (int64_t d = -3 * most; d <= 3 * most; ++d) {
        ASSERT_EQ(table.bucket(d), published_bucket(d, buckets, most, causal))
            << d << " of " << buckets << " buckets up to " << most << ", causal " << causal;
      }
    }
  }
}

TEST(RelativeBuckets, TellWhatIsBeforeFromWhatIsAfter) {
  const RelativeBuckets both = relative_buckets(32, 128, false), past = relative_buckets(32, 128, true);
  EXPECT_EQ(both.bucket(0), 0);
  EXPECT_EQ(both.bucket(-1), 1);
  EXPECT_EQ(both.bucket(1), 17);
  EXPECT_EQ(both.bucket(-100000), 15);
  EXPECT_EQ(both.bucket(100000), 31);
  EXPECT_EQ(past.bucket(5), 0);  // a later key, which nobody sees
  EXPECT_EQ(past.bucket(-15), 15);
  EXPECT_EQ(past.bucket(-128), 31);
}

}  // namespace
}  // namespace brisk
