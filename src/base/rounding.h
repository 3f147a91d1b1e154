// Integer division and multiples, rounded up.
//
//   divide_up(10, 4);  // 3: blocks of 4 needed to hold 10
//   round_up(10, 4);   // 12: the next multiple of 4
//
// Always inlined, since code compiled for several instruction sets uses them (ops/cpu/by_isa.h).
#pragma once

#include <cstdint>

namespace brisk {

[[gnu::always_inline]] constexpr int64_t divide_up(int64_t value, int64_t step) { return (value + step - 1) / step; }
[[gnu::always_inline]] constexpr int64_t round_up(int64_t value, int64_t step) { return divide_up(value, step) * step; }

}  // namespace brisk
