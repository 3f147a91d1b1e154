// Hashes of byte strings and integers: fast, and the same on every run and machine, so they can be keys of files.
//
//   const uint64_t key = hash_bytes("corpus.txt", hash_mix(version, vocab_size));
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace brisk {

// The 128-bit product of two words, folded to 64 bits: each bit of the result depends on every bit of both.
inline uint64_t hash_mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15ull) * (b ^ 0xD1B54A32D192ED03ull);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The bytes of a string of at most 8 as a number, without reading past its end.
inline uint64_t load_short(const char* bytes, size_t size) {
  if (size == 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    return word;
  }
  if (size >= 4) {
    uint32_t low, high;  // they overlap, and agree where they do
    std::memcpy(&low, bytes, 4);
    std::memcpy(&high, bytes + size - 4, 4);
    return low | static_cast<uint64_t>(high) << (8 * (size - 4));
  }
  if (size == 0) return 0;
  const auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i); };
  return byte(0) | byte(size / 2) | byte(size - 1);
}

inline uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = hash_mix(seed, left);
  for (; left > 8; at += 8, left -= 8) hash = hash_mix(hash, load_short(at, 8));
  return hash_mix(hash, load_short(at, left));
}

}  // namespace brisk
