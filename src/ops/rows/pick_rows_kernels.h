// What pick_rows_isa.cpp offers pick_rows_cpu.cpp, per instruction set.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/rows/pick_rows.h"

namespace brisk {

// Rows [begin, end) of dx.
BRISK_VECTOR_ISAS(void pick_rows_backward_rows(const PickRowsBackward& op, int64_t begin, int64_t end);)

}  // namespace brisk
