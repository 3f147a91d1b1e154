// Sums in an order that is fixed by their number alone: neighbours first, then pairs of neighbours, and so on. So what two
// processes add first is what four would have added first.
//
//   sum_tree(count, [&](int64_t i, int64_t j) { sums[i] += sums[j]; });     // the total is in sums[0]
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace brisk {

// ((v0 + v1) + (v2 + v3)) + ...: `add(i, j)` puts the sum of places i and j into i.
template <typename Add>
void sum_tree(int64_t count, const Add& add) {
  for (int64_t distance = 1; distance < count; distance *= 2) {
    for (int64_t i = 0; i + distance < count; i += 2 * distance) add(i, i + distance);
  }
}

inline double sum_in_tree(std::span<const double> numbers) {
  std::vector<double> sums(numbers.begin(), numbers.end());
  sum_tree(std::ssize(sums),
           [&](int64_t i, int64_t j) { sums[static_cast<size_t>(i)] += sums[static_cast<size_t>(j)]; });
  return sums.empty() ? 0 : sums.front();
}

}  // namespace brisk
