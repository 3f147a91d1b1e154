// Fetching what is packed next while tiles are multiplied: packing reads each number once, from afar, and would wait
// for every line of it.
//
//   const GemmAhead ahead(first_element, operand, rows, depth, depth_contiguous);
//   ahead.want(tile_number, tiles, tile);       // each of the tiles fetches its share of the block
#pragma once

#include <algorithm>

#include "base/rounding.h"
#include "ops/gemm_kernels.h"

namespace brisk::cpu {

struct GemmRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
// Part `part` of `parts` nearly equal parts of a range.
inline GemmRange divide(GemmRange range, int64_t part, int64_t parts) {
  return {range.begin + range.size() * part / parts, range.begin + range.size() * (part + 1) / parts};
}

// A block of an operand, or nothing.
class GemmAhead {
 public:
  GemmAhead() = default;
  GemmAhead(const void* first, const GemmOperand& operand, GemmRange across, GemmRange depth, bool depth_contiguous)
      : at_(static_cast<const char*>(first)),
        stride_(operand.stride * size_of(operand.type)),
        rows_(depth_contiguous ? across.size() : depth.size()),
        bytes_((depth_contiguous ? depth.size() : across.size()) * size_of(operand.type)) {}

  // The share of the block that a tile fetches, as much as it has room for.
  void want(int64_t part, int64_t parts, GemmTile& tile) const {
    tile.read[0].count = 0;
    if (rows_ == 0) return;
    constexpr int64_t kPair = 128, kMost = GemmTile::kRead;
    const GemmRange own = divide({0, rows_}, part, parts);
    const char* begin = at_ + own.begin * stride_;
    const int64_t pairs = divide_up(bytes_, kPair);
    const bool by_row = own.size() < pairs;
    const int64_t entries = std::min(by_row ? own.size() : pairs, kMost);
    for (int64_t i = 0; i < entries; ++i) {
      tile.read[i] = by_row ? GemmTile::Wanted{begin + i * stride_, kPair, pairs}
                            : GemmTile::Wanted{begin + i * kPair, stride_, own.size()};
    }
    if (entries < kMost) tile.read[entries].count = 0;
  }

 private:
  const char* at_ = nullptr;
  int64_t stride_ = 0, rows_ = 0, bytes_ = 0;  // of memory
};

}  // namespace brisk::cpu
