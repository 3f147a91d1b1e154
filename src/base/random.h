// Counter-based random numbers: a draw is a pure function of its key and index, not of previous draws. So packed
// sequences equal separate ones, recomputed activations equal stored ones, and the number of threads does not matter.
//
//   const uint64_t site = random_key({seed, step, op_site});              // once per op and step
//   const uint32_t row  = random_row_key(site, sequence, position);        // once per row
//   const uint32_t bits = random_bits(row, column);                        // once per element; 32-bit, so it vectorises
//
// Draws are good enough for dropout and initialisation; they are not cryptographic.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "base/host_device.h"

namespace brisk {

// Steele, Lea and Flood's 64-bit finalizer.
BRISK_HOST_DEVICE constexpr uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

BRISK_HOST_DEVICE constexpr uint64_t random_key(std::initializer_list<uint64_t> parts) {
  uint64_t key = 0;
  for (const uint64_t part : parts) key = mix64(key ^ part);
  return key;
}

BRISK_HOST_DEVICE constexpr uint32_t random_row_key(uint64_t site_key, uint32_t sequence, uint32_t position) {
  return static_cast<uint32_t>(mix64(site_key ^ (uint64_t{sequence} << 32 | position)) >> 32);
}

BRISK_HOST_DEVICE constexpr uint32_t folded(uint32_t x) { return x ^ (x >> 16); }

// A 32-bit finalizer (two multiplications) over the row's key and the column. folded(a) ^ folded(b) == folded(a ^ b), so
// kernels compute the row's and the column's parts once.
BRISK_HOST_DEVICE constexpr uint32_t random_unfolded(uint32_t row_key, uint32_t column) {
  uint32_t x = (folded(row_key) ^ folded(column * 0x9E3779B9u)) * 0x7FEB352Du;
  return (x ^ (x >> 15)) * 0x846CA68Bu;
}
BRISK_HOST_DEVICE constexpr uint32_t random_bits(uint32_t row_key, uint32_t column) {
  return folded(random_unfolded(row_key, column));
}

// An element's random bits for dropout, in the upper half of the word. Columns c and c + 8 share one 32-bit draw: c uses
// its low 16 bits, c + 8 the high ones. 16 bits are precise enough for a probability, and a kernel whose thread holds
// both columns (as tiles of GPU matrix instructions do) draws once for the two.
BRISK_HOST_DEVICE constexpr uint32_t dropout_bits(uint32_t row_key, uint32_t column) {
  return random_bits(row_key, column & ~8u) << ((~column & 8u) << 1);
}

// An element is dropped if its dropout_bits are below this multiple of 2^16.
BRISK_HOST_DEVICE inline uint32_t dropout_threshold(double probability) {
  return static_cast<uint32_t>(std::min(65535.0, probability * 65536.0 + 0.5)) << 16;
}

// Uniform in (0, 1), never 0.
BRISK_HOST_DEVICE constexpr double random_uniform(uint64_t key, uint64_t index) {
  return (static_cast<double>(mix64(key ^ mix64(index)) >> 11) + 0.5) * 0x1.0p-53;
}

// Two standard normals, number `pair` of a key's stream of pairs (Box-Muller).
struct NormalPair {
  float first, second;
};
BRISK_HOST_DEVICE inline NormalPair random_normal_pair(uint64_t key, uint64_t pair) {
  const float radius = std::sqrt(-2.0f * std::log(static_cast<float>(random_uniform(key, 2 * pair))));
  const float angle = 6.2831853f * static_cast<float>(random_uniform(key, 2 * pair + 1));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Element `index` of a stream of standard normals.
BRISK_HOST_DEVICE inline float random_normal(uint64_t key, uint64_t index) {
  const NormalPair pair = random_normal_pair(key, index / 2);
  return index % 2 == 0 ? pair.first : pair.second;
}

}  // namespace brisk
