// What gated_isa.cpp offers gated_cpu.cpp, per instruction set: rows [begin, end).
#pragma once

#include "ops/activation/gated.h"
#include "ops/cpu/by_isa.h"

namespace brisk {

BRISK_VECTOR_ISAS(void gated_forward_rows(const GatedForward& op, int64_t begin, int64_t end);)
BRISK_VECTOR_ISAS(void gated_backward_rows(const GatedBackward& op, int64_t begin, int64_t end);)

}  // namespace brisk
