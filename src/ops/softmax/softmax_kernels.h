// What softmax_isa.cpp offers softmax_cpu.cpp, per instruction set: rows [begin, end).
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/softmax/softmax.h"

namespace brisk {

BRISK_VECTOR_ISAS(void softmax_forward_rows(const SoftmaxForward& op, int64_t begin, int64_t end);)
BRISK_VECTOR_ISAS(void softmax_backward_rows(const SoftmaxBackward& op, int64_t begin, int64_t end);)

}  // namespace brisk
