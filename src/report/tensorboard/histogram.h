// How the values of a tensor are spread: buckets of equal width between the least and the greatest.
//
//   Histogram histogram;
//   for (piece of the values) histogram.see(piece);      // first the range,
//   for (piece of the values) histogram.count(piece);    // then the buckets
//
// Values that are not finite are left out, and counted apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace brisk {

struct Histogram {
  static constexpr int64_t kBuckets = 64;  // TensorBoard draws 30

  void see(std::span<const float> values);
  void count(std::span<const float> values);

  double least = 0, greatest = 0, sum = 0, sum_of_squares = 0;
  int64_t values = 0, not_finite = 0;
  std::vector<double> limits;  // the right edge of each bucket
  std::vector<double> counts;
};

}  // namespace brisk
