// What rotary_isa.cpp offers rotary_cpu.cpp, per instruction set.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/rotary/rotary.h"

namespace brisk {

// Turns of every position, a row of K floats each: `cosine` holds cos cos of pair 0, pair 1, ...; `sine` holds -sin
// sin, so that  turned = x * cosine + (x with each pair swapped) * sine.
struct RotaryTable {
  const float* cosine = nullptr;  // [P, K]
  const float* sine = nullptr;    // [P, K]
};

// Rows [begin, end).
BRISK_VECTOR_ISAS(void rotary_rows(const Rotary& op, const RotaryTable& table, int64_t begin, int64_t end);)

}  // namespace brisk
