#include "doctor/ladder/statistics.h"

#include <algorithm>
#include <cmath>

namespace brisk {

namespace {

// That at most `k` of n coins show heads.
double binomial_tail(int64_t n, int64_t k) {
  double sum = 0, term = std::pow(0.5, static_cast<double>(n));
  for (int64_t i = 0; i <= k; ++i) {
    sum += term;
    term *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  }
  return sum;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

Ratio median_ratio(std::vector<double> ratios) {
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  const int64_t count = std::ssize(ratios);
  // The innermost pair of order statistics that still has the confidence; the outermost where none has.
  int64_t left_out = 0;
  while (2 * (left_out + 1) < count && 1 - 2 * binomial_tail(count, left_out + 1) >= 0.95) ++left_out;
  return {.median = median(ratios),
          .low = ratios[static_cast<size_t>(left_out)],
          .high = ratios[static_cast<size_t>(count - 1 - left_out)],
          .confidence = std::max(0.0, 1 - 2 * binomial_tail(count, left_out))};
}

double standard_deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace brisk
