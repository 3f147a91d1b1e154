// Dropout as an argument of other ops: it is never a kernel of its own.
//
//   cpu::norm_forward({.x = x, .gain = gain, .y = y, .dropout = {0.1f, random_key({seed, step, site})}, .rows = rows});
#pragma once

#include <cstdint>

#include "base/random.h"
#include "tensor/rows.h"

namespace brisk {

// Element (row, column) is kept when dropout_bits(random_row_key(key, sequence, position), column) >= threshold, and
// then scaled by one over the share that is kept. Backward draws the same bits again, so nothing is stored.
struct Dropout {
  float probability = 0;
  uint64_t key = 0;  // random_key({seed, step, site of the op})
  // On a GPU seed and step may lie in device memory, so that a captured graph can be replayed for every step: this
  // points to random_key({seed, step}), and `key` is the site alone.
  const uint64_t* step_key = nullptr;

  BRISK_HOST_DEVICE bool active() const { return probability > 0; }
  BRISK_HOST_DEVICE uint32_t threshold() const { return dropout_threshold(probability); }
  BRISK_HOST_DEVICE float scale() const { return 65536.0f / static_cast<float>(65536 - (threshold() >> 16)); }
  [[gnu::always_inline]] BRISK_HOST_DEVICE uint64_t drawn_key() const {
    return step_key == nullptr ? key : mix64(*step_key ^ key);
  }
  // What a row's draws begin with. Always inlined: kernels of several instruction sets use it (ops/cpu/by_isa.h).
  [[gnu::always_inline]] BRISK_HOST_DEVICE uint32_t row_key(const RowSet& rows, int64_t row) const {
    return random_row_key(drawn_key(), static_cast<uint32_t>(rows.sequence[row]),
                          static_cast<uint32_t>(rows.position[row]));
  }
  // For plain loops: whether an element is kept, and what it is multiplied by (0 if dropped, 1 without dropout).
  BRISK_HOST_DEVICE bool keeps(uint32_t row_key, int64_t column) const {
    return dropout_bits(row_key, static_cast<uint32_t>(column)) >= threshold();
  }
  BRISK_HOST_DEVICE float factor(uint32_t row_key, int64_t column) const {
    return !active() ? 1 : keeps(row_key, column) ? scale() : 0;
  }
  BRISK_HOST_DEVICE float factor(const RowSet& rows, int64_t row, int64_t column) const {
    return active() ? factor(row_key(rows, row), column) : 1;
  }
};

}  // namespace brisk
