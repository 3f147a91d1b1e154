#include "report/tensorboard/histogram.h"

#include <algorithm>
#include <cmath>

namespace brisk {

void Histogram::see(std::span<const float> piece) {
  for (const float value : piece) {
    if (!std::isfinite(value)) {
      ++not_finite;
      continue;
    }
    const double wide = value;
    least = values == 0 ? wide : std::min(least, wide);
    greatest = values == 0 ? wide : std::max(greatest, wide);
    sum += wide;
    sum_of_squares += wide * wide;
    ++values;
  }
}

void Histogram::count(std::span<const float> piece) {
  if (values == 0) return;
  const bool constant = greatest <= least;
  if (counts.empty()) {
    const int64_t buckets = constant ? 1 : kBuckets;
    counts.assign(static_cast<size_t>(buckets), 0);
    for (int64_t i = 1; i <= buckets; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(buckets);
      limits.push_back(i == buckets ? greatest : least + share * (greatest - least));
    }
  }
  const double scale = constant ? 0 : kBuckets / (greatest - least);
  for (const float value : piece) {
    if (!std::isfinite(value)) continue;
    const auto bucket = static_cast<int64_t>((value - least) * scale);
    ++counts[static_cast<size_t>(std::clamp<int64_t>(bucket, 0, std::ssize(counts) - 1))];
  }
}

}  // namespace brisk
