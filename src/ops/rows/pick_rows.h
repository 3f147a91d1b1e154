// pick_rows: row r of y is row source[r] of x. Backward adds each row of dy to the row of dx it came from, in the order
// of y's rows: a row may be picked twice, or never.
//
//   Value first = pick_rows(tape, h, 1);                                      // on the tape (ops/tape/tape_ops.h)
//   cpu::pick_rows_forward({.x = x, .source = source, .y = y});               // or directly
#pragma once

#include "tensor/tensor.h"

namespace brisk {

struct PickRowsForward {
  Tensor x;                         // [N, D] f32 or bf16
  const int32_t* source = nullptr;  // [P]
  Tensor y;                         // [P, D], the type of x
};

struct PickRowsBackward {
  Tensor dy;                        // [P, D]
  const int32_t* source = nullptr;  // [P]
  Tensor dx;                        // [N, D]
  bool dx_adds = false;             // dx += instead of dx =
};

namespace ref {
void pick_rows_forward(const PickRowsForward& op);
void pick_rows_backward(const PickRowsBackward& op);
}  // namespace ref
namespace cpu {
void pick_rows_forward(const PickRowsForward& op);
void pick_rows_backward(const PickRowsBackward& op);
}  // namespace cpu
namespace cuda {
void pick_rows_forward(const PickRowsForward& op);
void pick_rows_backward(const PickRowsBackward& op);
}  // namespace cuda

}  // namespace brisk
