// What pointwise_isa.cpp offers pointwise_cpu.cpp, per instruction set: rows [begin, end).
#pragma once

#include "ops/activation/pointwise.h"
#include "ops/cpu/by_isa.h"

namespace brisk {

BRISK_VECTOR_ISAS(void pointwise_forward_rows(const PointwiseForward& op, int64_t begin, int64_t end);)
BRISK_VECTOR_ISAS(void pointwise_backward_rows(const PointwiseBackward& op, int64_t begin, int64_t end);)

}  // namespace brisk
