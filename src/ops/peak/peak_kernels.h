// A burst of independent multiply-adds in registers.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/gemm/gemm.h"

namespace brisk {

// Runs `rounds` rounds and returns the operations done (two per multiply-add); 0 if there is no such instruction.
BRISK_EVERY_ISA(double multiply_add_burst(Arithmetic arithmetic, int64_t rounds);)

}  // namespace brisk
