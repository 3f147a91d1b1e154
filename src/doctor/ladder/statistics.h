// How much faster one of two trainings is, from stretches that were measured in turns.
//
//   const Ratio gain = median_ratio({1.31, 1.28, 1.35, 1.30, 1.29, 1.33});
//   gain.median; gain.low; gain.high;      // 95 %, where there are at least six
#pragma once

#include <cstdint>
#include <vector>

namespace brisk {

struct Ratio {
  double median = 1, low = 1, high = 1;
  double confidence = 0;  // that the median of all such ratios lies between low and high: at least 0.95 with six ratios
};

// The interval is that of the order statistics: it supposes nothing of how the noise is distributed.
Ratio median_ratio(std::vector<double> ratios);

double median(std::vector<double> values);                     // 0 of none
double standard_deviation(const std::vector<double>& values);  // of a sample; 0 of fewer than two

}  // namespace brisk
