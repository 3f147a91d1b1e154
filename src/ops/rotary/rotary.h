// rotary: rotates each pair (2i, 2i+1) of a head by position * theta^(-2i/K). The first `rotated` columns of x are heads
// of width K to rotate (queries and keys of a joint QKV matrix); the rest are copied. Backward rotates by the opposite
// angle.
//
//   Value rotated = rotary(tape, qkv, /*rotated=*/2 * D, /*head_width=*/64, /*theta=*/10000);   // on the tape
//   cpu::rotary({.x = qkv, .y = qkv, .rows = rows, .rotated = 2 * D, .head_width = 64, .theta = 10000});
#pragma once

#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

struct Rotary {
  Tensor x;  // [N, C]
  Tensor y;  // [N, C]; may be the same memory as x
  RowSet rows;
  int64_t rotated = 0;  // a multiple of head_width
  int64_t head_width = 64;
  float theta = 10000.0f;
  bool inverse = false;  // the opposite angle: backward
};

namespace ref {
void rotary(const Rotary& op);
}
namespace cpu {
void rotary(const Rotary& op);
}
namespace cuda {
void rotary(const Rotary& op);
}

}  // namespace brisk
