// What ops on a CPU take in addition to a program's arena: packed panels of products and a thread's scratch, which live as
// long as the thread that asked for them and only grow. Known from the tape, so that plans of memory can count it.
//
//   const int64_t bytes = cpu_workspace_bytes(tape);        // of all ops, with the current number of threads
#pragma once

#include <cstdint>

#include "ops/attention/attention.h"
#include "ops/gemm/gemm.h"
#include "tensor/tape.h"

namespace brisk {

// Ops of one family use the same memory one after the other; those of two families do not.
int64_t cpu_workspace_bytes(const Tape& tape);

// Sums over rows, one row of sums for each block of them (ops/cpu/row_blocks.h).
int64_t column_sums_workspace_bytes(int64_t rows, int64_t columns);

namespace cpu {
// Of a product of this shape; `plain`: into f32, without any epilogue.
int64_t gemm_workspace_bytes(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, bool plain,
                             Arithmetic arithmetic);
// y = x W^T and the gradients of x and W: the largest of the three products.
int64_t product_workspace_bytes(int64_t rows, int64_t inputs, int64_t outputs, DType x_type, DType product_type);
// Of sequences of at most so many queries and keys, forward and backward.
int64_t attention_workspace_bytes(const AttentionShape& shape, bool has_entropy, bool has_bias, DType type,
                                  int64_t queries, int64_t keys);
}  // namespace cpu

}  // namespace brisk
