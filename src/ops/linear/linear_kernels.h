// The kernels of linear's backward besides gemm, per instruction set. Sums over rows [begin, end) are added to column_sums
// [O], which may be none.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/linear/linear.h"

namespace brisk {

// scratch = dy * slope of the activation at `before` * dropout's factor
BRISK_VECTOR_ISAS(void linear_gradient_rows(const LinearBackward& op, int64_t begin, int64_t end, float* column_sums);)
BRISK_VECTOR_ISAS(void linear_column_sums(const Tensor& x, int64_t begin, int64_t end, float* column_sums);)

}  // namespace brisk
