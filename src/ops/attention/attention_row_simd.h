// What kernels of attention do with one row of scores, and where they keep their copies. Included by *_isa.cpp files alone.
#pragma once

#include "base/rounding.h"
#include "ops/attention/attention.h"
#include "ops/cpu/simd.h"
#include "tensor/tensor.h"

namespace brisk::BRISK_ISA {

constexpr float kLowest = -3.0e38f;  // below every score

// Draws of one row of one head.
struct RowDropout {
  RowDropout(const Dropout& dropout, const RowSet& rows, int64_t head, int64_t row)
      : active(dropout.active()), threshold(dropout.threshold()) {
    if (!active) return;
    row_key = attention_dropout(dropout, head).row_key(rows, row);
  }
  RowDropout(const AttentionForward& op, int64_t head, int64_t row) : RowDropout(op.dropout, op.queries, head, row) {}
  // x where key j is kept, 0 where it is dropped; scaling is the caller's
  Vec keep(Vec x, int64_t key) const {
    return keep_at_least(dropout_bits(row_key, static_cast<uint32_t>(key)), int_set1(threshold), x);
  }
  bool active;
  uint32_t threshold, row_key = 0;
};

// Scores of one row become powers e^(score - largest); the maximum and the sum of powers so far move on. Returns what
// the row's sums so far must be multiplied by.
inline float soften_row(float* scores, int64_t limit, int64_t zero_to, const RowDropout& dropout, int64_t block,
                        float& largest, float& total) {
  Vec highest = set1(kLowest);
  for_columns(limit, [&](int64_t j, int64_t lanes)
                         BRISK_INLINE { highest = max(highest, first_lanes(load(scores + j), lanes, set1(kLowest))); });
  const float before = largest;
  largest = std::max(before, reduce_max(highest));
  Vec sum = zero();
  const Vec shift = set1(largest);
  for_columns(limit, [&](int64_t j, int64_t lanes) BRISK_INLINE {
    const Vec power = first_lanes(exp(load(scores + j) - shift), lanes);
    sum = sum + power;
    store(scores + j, dropout.active ? dropout.keep(power, block + j) : power);
  });
  for (int64_t j = round_up(limit, kLanes); j < zero_to; j += kLanes) store(scores + j, zero());
  // The power of the lowest number is 0; asked for it, the library takes longer than for all powers of a window's row.
  const float correction = before == largest ? 1.0f : before == kLowest ? 0.0f : __builtin_expf(before - largest);
  total = total * correction + reduce_add(sum);
  return correction;
}

// Scores and dy . v of one row become what multiplies dy in dv (kept probabilities) and q in dk (the scores' gradient).
inline void differentiate_row(float* scores, float* dscores, int64_t limit, int64_t zero_to, const RowDropout& dropout,
                              float dropout_scale, int64_t block, float log_sum_exp, float dy_dot_y) {
  const Vec shift = set1(log_sum_exp), mean = set1(dy_dot_y), scale = set1(dropout_scale);
  if (dropout.active) {
    for_columns(limit, [&](int64_t j, int64_t lanes) BRISK_INLINE {
      const Vec p = first_lanes(exp(load(scores + j) - shift), lanes);
      store(dscores + j, first_lanes(p * (dropout.keep(load(dscores + j) * scale, block + j) - mean), lanes));
      store(scores + j, dropout.keep(p * scale, block + j));
    });
  } else {
    for_columns(limit, [&](int64_t j, int64_t lanes) BRISK_INLINE {
      const Vec p = first_lanes(exp(load(scores + j) - shift), lanes);
      store(dscores + j, first_lanes(p * (load(dscores + j) - mean), lanes));
      store(scores + j, p);
    });
  }
  for (int64_t j = round_up(limit, kLanes); j < zero_to; j += kLanes) {
    store(scores + j, zero());
    store(dscores + j, zero());
  }
}

inline float dot_row(const float* a, const Tensor& t, int64_t row, int64_t col, int64_t width) {
  Vec sum = zero();
  with_element(t.type, [&](auto of_t) {
    const auto* b = t.as<decltype(of_t)>() + row * t.stride + col;
    for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE { sum = fma(load(a + c), load(b + c, lanes), sum); });
  });
  return reduce_add(sum);
}

// Hands out pieces of the scratch, each aligned to 64 bytes; without memory it only counts.
struct Scratch {
  float* take(int64_t floats) {
    float* piece = memory == nullptr ? nullptr : static_cast<float*>(memory) + used;
    used += round_up(floats, 16);
    return piece;
  }
  int64_t bytes() const { return used * static_cast<int64_t>(sizeof(float)); }
  void* memory;
  int64_t used = 0;
};

}  // namespace brisk::BRISK_ISA
