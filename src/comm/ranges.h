// Ranges of an array, one for each rank: [bounds[r], bounds[r + 1]).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace brisk {

inline int64_t longest_range(std::span<const int64_t> bounds) {
  int64_t longest = 0;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) longest = std::max(longest, bounds[i + 1] - bounds[i]);
  return longest;
}

struct RangePiece {
  int64_t begin, count;
};

// Of a rank's range: at most `size` elements, `offset` after its beginning.
inline RangePiece piece_of(std::span<const int64_t> bounds, int rank, int64_t offset, int64_t size) {
  const auto r = static_cast<size_t>(rank);
  return {bounds[r] + offset, std::clamp<int64_t>(bounds[r + 1] - bounds[r] - offset, 0, size)};
}

}  // namespace brisk
