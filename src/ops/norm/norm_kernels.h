// What norm_isa.cpp offers norm_cpu.cpp, per instruction set.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/norm/norm.h"

namespace brisk {

// Rows [begin, end).
BRISK_VECTOR_ISAS(void norm_forward_rows(const NormForward& op, int64_t begin, int64_t end);)
// The same; dgain and dbias (or null) of these rows alone are written to [D] scratch.
BRISK_VECTOR_ISAS(void norm_backward_rows(const NormBackward& op, int64_t begin, int64_t end, float* dgain,
                                          float* dbias);)

}  // namespace brisk
