// Products of a few rows of A, as when text is generated token by token: then packing B would cost more than the
// product, so each row of B^T (a row of the weight) is multiplied where it lies.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/gemm_kernels.h"

namespace brisk {

constexpr int64_t kFewRows = 16;      // twice as fast as packing at 16 rows in fp32
constexpr int64_t kFewRowsBf16 = 8;   // where bf16 instructions make packing worth while sooner
constexpr int64_t kFewRowsCols = 64;  // columns of C computed at a time

// out[row][col - first] for columns [first, first + count), count <= kFewRowsCols; out has kFewRowsCols floats a row.
// A not transposed, B transposed. In bf16 arithmetic factors are rounded to bf16 and multiplied as floats.
BRISK_VECTOR_ISAS(void multiply_few_rows(int64_t m, int64_t k, const GemmOperand& a, const GemmOperand& b,
                                         Arithmetic arithmetic, int64_t first, int64_t count, float* out);)

namespace cpu {

// C of at most kFewRows rows: whole blocks of its columns to each thread.
void gemm_few_rows(const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, const GemmOperand& a,
                   const GemmOperand& b, const GemmEpilogue& epilogue, Arithmetic arithmetic);

}  // namespace cpu

}  // namespace brisk
