// What elementwise_isa.cpp offers elementwise_cpu.cpp, per instruction set: rows [begin, end).
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/elementwise/elementwise.h"

namespace brisk {

BRISK_VECTOR_ISAS(void combine_rows(const Combine& op, int64_t begin, int64_t end);)
BRISK_VECTOR_ISAS(void sum_columns_rows(const SumColumns& op, int64_t begin, int64_t end);)
// The sum of these rows alone into `sum`, [D].
BRISK_VECTOR_ISAS(void sum_rows_part(const SumRows& op, int64_t begin, int64_t end, float* sum);)

}  // namespace brisk
