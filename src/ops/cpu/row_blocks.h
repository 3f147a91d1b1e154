// Rows in blocks whose sums are taken apart and added in their order: what the sum over all rows comes to depends on the number
// of rows alone, whoever computes which block.
//
//   const RowBlocks blocks(rows);
//   pool.for_range(blocks.count, 1, ... sums of block b: [blocks.begin(b), blocks.end(b)));
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/rounding.h"

namespace brisk {

struct RowBlocks {
  static constexpr int64_t kMost = 64;
  // A block's sums are in the first-level cache with the row they are added to, and to add the blocks up costs 1 % of that.
  static constexpr int64_t kLeastRows = 128;

  explicit RowBlocks(int64_t all)
      : rows(all),
        size(std::max(kLeastRows, round_up(divide_up(all, kMost), 16))),
        count(std::max<int64_t>(1, divide_up(all, size))) {}

  int64_t begin(int64_t block) const { return block * size; }
  int64_t end(int64_t block) const { return std::min(rows, (block + 1) * size); }

  int64_t rows, size, count;
};

}  // namespace brisk
