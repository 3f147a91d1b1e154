// Integer division and multiples, rounded up; and numbers by their leading binary digits.
//
//   divide_up(10, 4);       // 3: blocks of 4 needed to hold 10
//   round_up(10, 4);        // 12: the next multiple of 4
//   leading_bits(1234, 3);  // 1024: 100'1101'0010 with all but its first three digits 0
//
// Always inlined, since code compiled for several instruction sets uses them (ops/cpu/by_isa.h).
#pragma once

#include <bit>
#include <cstdint>

namespace brisk {

[[gnu::always_inline]] constexpr int64_t divide_up(int64_t value, int64_t step) { return (value + step - 1) / step; }
[[gnu::always_inline]] constexpr int64_t round_up(int64_t value, int64_t step) { return divide_up(value, step) * step; }

// One number for all that are near each other.
[[gnu::always_inline]] constexpr int64_t leading_bits(int64_t value, int bits) {
  if (value < int64_t{1} << bits) return value;
  const int shift = std::bit_width(static_cast<uint64_t>(value)) - bits;
  return (value >> shift) << shift;
}

}  // namespace brisk
