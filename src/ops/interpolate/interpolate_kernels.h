// What interpolate_isa.cpp offers interpolate_cpu.cpp, per instruction set: rows [begin, end).
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/interpolate/interpolate.h"

namespace brisk {

BRISK_VECTOR_ISAS(void interpolate_forward_rows(const InterpolateForward& op, int64_t begin, int64_t end);)
BRISK_VECTOR_ISAS(void interpolate_backward_rows(const InterpolateBackward& op, int64_t begin, int64_t end);)

}  // namespace brisk
