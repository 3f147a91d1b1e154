// Dropout as an argument of other ops: it is never a pass of its own.
//
//   cpu::norm_forward({.x = x, .gain = gain, .y = y, .dropout = {0.1f, random_key({seed, step, site})}, .rows = rows});
#pragma once

#include <cstdint>

#include "base/random.h"

namespace brisk {

// Element (row, column) is kept when random_bits(random_row_key(key, sequence, position), column) >= threshold, and
// then scaled by 1 / (1 - probability). Backward draws the same bits again, so nothing is stored.
struct Dropout {
  float probability = 0;
  uint64_t key = 0;  // random_key({seed, step, site of the op})

  bool active() const { return probability > 0; }
  uint32_t threshold() const { return dropout_threshold(probability); }
  float scale() const { return 1.0f / (1.0f - probability); }
};

}  // namespace brisk
