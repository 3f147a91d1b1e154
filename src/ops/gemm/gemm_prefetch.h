// Software prefetch for GEMM: while a tile is multiplied, it prefetches its share of the block that will be packed next,
// since packing reads each number once and would wait for memory. Shares are computed incrementally: a division per
// tile costs 1 %.
//
//   GemmPrefetch prefetch(first_element, operand, rows, depth, depth_contiguous);
//   prefetch.share_among(tiles);
//   for (...) prefetch.next(tile);       // each tile prefetches its share of the block
#pragma once

#include <algorithm>

#include "base/rounding.h"
#include "ops/gemm/gemm_kernels.h"

namespace brisk::cpu {

struct GemmRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
// Part `part` of `parts` nearly equal parts of a range.
inline GemmRange divide(GemmRange range, int64_t part, int64_t parts) {
  return {range.begin + range.size() * part / parts, range.begin + range.size() * (part + 1) / parts};
}

// The same parts in order, without a division for each.
class GemmParts {
 public:
  GemmParts() = default;
  GemmParts(GemmRange range, int64_t parts)
      : at_(range.begin), parts_(parts), whole_(range.size() / parts), rest_(range.size() % parts) {}
  GemmRange next() {
    const int64_t begin = at_;
    at_ += whole_;
    if ((owed_ += rest_) >= parts_) owed_ -= parts_, ++at_;
    return {begin, at_};
  }

 private:
  int64_t at_ = 0, parts_ = 1, whole_ = 0, rest_ = 0, owed_ = 0;
};

// A block of an operand, or nothing.
class GemmPrefetch {
 public:
  GemmPrefetch() = default;
  GemmPrefetch(const void* first, const GemmOperand& operand, GemmRange across, GemmRange depth, bool depth_contiguous)
      : at_(static_cast<const char*>(first)),
        stride_(operand.stride * size_of(operand.type)),
        rows_(depth_contiguous ? across.size() : depth.size()),
        pairs_(divide_up((depth_contiguous ? depth.size() : across.size()) * size_of(operand.type), kPair)) {}

  void share_among(int64_t tiles) { shares_ = GemmParts({0, rows_}, tiles); }

  // The share of the next tile, as much as it has room for.
  void next(GemmTile& tile) {
    tile.read[0].count = 0;
    if (rows_ == 0) return;
    constexpr int64_t kMost = GemmTile::kRead;
    const GemmRange own = shares_.next();
    const char* begin = at_ + own.begin * stride_;
    const bool by_row = own.size() < pairs_;
    const int64_t entries = std::min(by_row ? own.size() : pairs_, kMost);
    for (int64_t i = 0; i < entries; ++i) {
      tile.read[i] = by_row ? GemmTile::Wanted{begin + i * stride_, kPair, pairs_}
                            : GemmTile::Wanted{begin + i * kPair, stride_, own.size()};
    }
    if (entries < kMost) tile.read[entries].count = 0;
  }

 private:
  static constexpr int64_t kPair = 128;  // bytes of two lines
  const char* at_ = nullptr;
  int64_t stride_ = 0, rows_ = 0, pairs_ = 0;  // of memory
  GemmParts shares_;
};

}  // namespace brisk::cpu
