// elementwise: sums and products of two matrices with broadcast, and sums over columns or rows, which are their gradients.
// General ops: with them a block that no fused op computes works at once.
//
//   Value y = multiply(tape, x, gate);                                                       // on the tape; gate: [N, 1]
//   cpu::combine({.kind = Combine::Kind::multiply, .a = x, .b = gate, .y = y});              // or directly
//
// Types may differ; what is added up is f32.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace brisk {

// y = a + b or a * b. b is broadcast along columns where it has fewer: each of its G columns stands for D / G columns of
// a (G = 1: a number for the row; G = heads: one for each head); and along rows where it has a single one.
struct Combine {
  enum class Kind : uint8_t { add, multiply };
  Kind kind = Kind::add;
  Tensor a;  // [N, D], or none: y = b
  Tensor b;  // [N, G] or [1, G]
  Tensor y;  // [N, D]
  bool y_adds = false;
};

// Each column of y is the sum of D / G neighbouring columns of a, or of a * b.
struct SumColumns {
  Tensor a;  // [N, D]
  Tensor b;  // [N, D], or none
  Tensor y;  // [N, G]
  bool y_adds = false;
};

// y = the sum of the rows of a, or of a * b: first of kSumRowsParts parts of them, then of those in order, so that the
// number of threads changes nothing.
constexpr int64_t kSumRowsParts = 128;
struct SumRows {
  Tensor a;        // [N, D]
  Tensor b;        // [N, D], or none
  Tensor y;        // [1, D] f32
  Tensor scratch;  // [kSumRowsParts, D] f32
  bool y_adds = false;
};

namespace ref {
void combine(const Combine& op);
void sum_columns(const SumColumns& op);
void sum_rows(const SumRows& op);
}  // namespace ref
namespace cpu {
void combine(const Combine& op);
void sum_columns(const SumColumns& op);
void sum_rows(const SumRows& op);
}  // namespace cpu
namespace cuda {
void combine(const Combine& op);
void sum_columns(const SumColumns& op);
void sum_rows(const SumRows& op);
}  // namespace cuda

}  // namespace brisk
