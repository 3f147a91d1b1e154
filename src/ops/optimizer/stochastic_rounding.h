// Stochastic rounding to bf16: up or down with the probability that makes the mean exact. So a weight stored only in
// bf16 takes small updates once in many times, where rounding to nearest would lose every one of them.
//
//   const uint64_t key = rounding_key(step_key);
//   weight[i] = to_bf16_stochastic(updated, rounding_bits(key, i));
//
// The random bits are counter-based (base/random.h): a function of seed, step and element.
#pragma once

#include "base/random.h"
#include "tensor/dtype.h"

namespace brisk {

BRISK_HOST_DEVICE constexpr bf16_t to_bf16_stochastic(float value, uint32_t random) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7F800000u) == 0x7F800000u) return to_bf16(value);  // not finite
  return {static_cast<uint16_t>((bits + (random & 0xFFFFu)) >> 16)};
}

// `step_key`: random_key({seed, step}).
BRISK_HOST_DEVICE constexpr uint64_t rounding_key(uint64_t step_key) { return mix64(step_key ^ 0x726F756E64ull); }

// Of element `element` of the flat arrays.
BRISK_HOST_DEVICE constexpr uint32_t rounding_bits(uint64_t key, int64_t element) {
  const auto row = static_cast<uint64_t>(element) >> 16;
  return random_bits(random_row_key(key, static_cast<uint32_t>(row >> 32), static_cast<uint32_t>(row)),
                     static_cast<uint32_t>(element & 0xFFFF));
}

}  // namespace brisk
