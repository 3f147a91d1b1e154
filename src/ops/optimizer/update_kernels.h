// What update_isa.cpp offers update_cpu.cpp, per instruction set.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/optimizer/update.h"

namespace brisk {

// Parameters [begin, end).
BRISK_VECTOR_ISAS(void adamw_update_range(const AdamWUpdate& op, int64_t begin, int64_t end);)
BRISK_VECTOR_ISAS(double squared_norm_range(const float* values, int64_t begin, int64_t end);)
BRISK_VECTOR_ISAS(void convert_to_bf16_range(const float* values, bf16_t* out, int64_t begin, int64_t end);)

}  // namespace brisk
