// grouped_linear: a linear layer whose weight is block-diagonal. The inputs are G groups of I columns, and each has outputs
// of its own: y[n, (p G + g) O + o] = bias[...] + sum over i of weight[(p G + g) O + o, i] x[n, input(g, i)].
//
//   Value qkv = grouped_linear(tape, x, weight, bias, {.groups = 16, .parts = 3});         // 16 x 4 columns to 3 x 16 x 4
//
// Parts are what a group has several of, one after the other for all groups: queries, keys, values. The arithmetic is f32;
// the weight is f32, and x and y may be of any type. A group's inputs are neighbouring columns, or a tile of the row as a
// matrix. Saved for backward: x.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "tensor/tensor.h"

namespace brisk {

// Which columns a group reads. The row as a matrix of `matrix_cols` columns is cut into tiles of `tile_cols` columns and
// as many rows as a group's inputs fill; tile g, row by row, is what group g reads. matrix_cols 0: neighbouring columns.
struct GroupInputs {
  int64_t inputs = 1;  // I
  int64_t matrix_cols = 0;
  int64_t tile_cols = 0;

  BRISK_HOST_DEVICE int64_t column(int64_t g, int64_t i) const {
    if (matrix_cols == 0) return g * inputs + i;
    const int64_t tiles = matrix_cols / tile_cols;  // side by side
    const int64_t row = g / tiles * (inputs / tile_cols) + i / tile_cols;
    return row * matrix_cols + g % tiles * tile_cols + i % tile_cols;
  }
};

struct GroupedLinearShape {
  int64_t groups = 1;   // G
  int64_t parts = 1;    // P
  int64_t outputs = 1;  // O, of a group in a part
  GroupInputs inputs;

  BRISK_HOST_DEVICE int64_t group_of(int64_t output) const { return output / outputs % groups; }
};

struct GroupedLinearForward {
  GroupedLinearShape shape;
  Tensor x;       // [N, G I]
  Tensor weight;  // [P G O, I] f32
  Tensor bias;    // [1, P G O] f32, or none
  Tensor y;       // [N, P G O]
};

// The gradients of the weight and the bias are sums of as many parts of the rows, in order, so that the number of threads
// changes nothing.
constexpr int64_t kGroupedLinearParts = 64;

struct GroupedLinearBackward {
  GroupedLinearShape shape;
  Tensor dy;      // [N, P G O]
  Tensor x;       // [N, G I]
  Tensor weight;  // [P G O, I] f32
  Tensor dx;      // [N, G I] or none
  bool dx_adds = false;
  Tensor dweight;  // [P G O, I] f32, or none (frozen)
  bool dweight_adds = false;
  Tensor dbias;  // [1, P G O] f32, or none
  bool dbias_adds = false;
  Tensor scratch;  // [kGroupedLinearParts, P G O (I + 1)] f32, where there is a dweight
};

namespace ref {
void grouped_linear_forward(const GroupedLinearForward& op);
void grouped_linear_backward(const GroupedLinearBackward& op);
}  // namespace ref
namespace cpu {
void grouped_linear_forward(const GroupedLinearForward& op);
void grouped_linear_backward(const GroupedLinearBackward& op);
}  // namespace cpu
namespace cuda {
void grouped_linear_forward(const GroupedLinearForward& op);
void grouped_linear_backward(const GroupedLinearBackward& op);
}  // namespace cuda

}  // namespace brisk
