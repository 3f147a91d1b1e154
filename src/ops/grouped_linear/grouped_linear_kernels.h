// What grouped_linear_isa.cpp offers grouped_linear_cpu.cpp, per instruction set: rows [begin, end).
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/grouped_linear/grouped_linear.h"

namespace brisk {

// Groups of 4 inputs and as many outputs, at most this many columns of x: a row of x and of its gradient fit the stack.
constexpr int64_t kGroupOfFour = 4;
constexpr int64_t kMostGroupedColumns = 1024;

BRISK_VECTOR_ISAS(void grouped_linear_forward_rows(const GroupedLinearForward& op, const float* weight, int64_t begin,
                                                   int64_t end);)
// dx alone.
BRISK_VECTOR_ISAS(void grouped_linear_dx_rows(const GroupedLinearBackward& op, const float* weight, int64_t begin,
                                              int64_t end);)
// Overwrites `sums`: [I, P G O] of the weight, then [P G O] of the bias.
BRISK_VECTOR_ISAS(void grouped_linear_dweight_rows(const GroupedLinearBackward& op, float* sums, int64_t begin,
                                                   int64_t end);)

}  // namespace brisk
