// grid_attention: softmax(scale Q K^T + bias) V of the rows of each region of a grid (grid_windows.h) and each head; P x P is
// never stored. Every sequence has the same grid.
//
//   const GridWindows windows = GridWindows::of(56, 56, 7, /*shift=*/3);
//   Value bias = window_bias(tape, table, windows);                                  // one for each pair of places
//   Value y = grid_attention(tape, qkv, {.windows = windows, .heads = 3, .head_width = 32}, bias, /*dropout=*/0);
//
// Saved for backward: q, k, v, y and log_sum_exp. Dropout of the probabilities: as attention's (ops/attention/attention.h),
// column = number of the key within its region.
#pragma once

#include <math.h>

#include "base/host_device.h"
#include "ops/attention/attention.h"
#include "ops/dropout.h"
#include "ops/grid_attention/grid_windows.h"
#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

struct GridAttentionShape {
  GridWindows windows;
  int64_t heads = 1;        // H
  int64_t head_width = 64;  // K
  [[gnu::always_inline]] BRISK_HOST_DEVICE float scale() const { return 1.0f / sqrtf(static_cast<float>(head_width)); }
};

struct GridAttentionForward {
  GridAttentionShape shape;
  Tensor qkv;   // [N, 3 H K]: queries, keys, values
  RowSet rows;  // sequences of windows.rows() rows, and perhaps some of none at the end
  Tensor bias;  // [H, P P] f32: of a query's place and a key's; or none
  Dropout dropout;
  Tensor y;            // [N, H K] out; 0 in rows of no sequence
  Tensor log_sum_exp;  // [N, H] f32 out, or none without gradient
};

struct GridAttentionBackward {
  GridAttentionForward forward;  // as it was, y and log_sum_exp filled
  Tensor dy;                     // [N, H K]
  Tensor dqkv;                   // [N, 3 H K] out, overwritten; 0 in rows of no sequence
  Tensor dbias;                  // as the bias, out, overwritten; given exactly where there is one, and so is
  Tensor dbias_parts;            // [parts H, P P] f32 scratch: what each part of the regions adds to it
};

// Into how many parts the regions of all sequences are divided for the sums of the bias's gradient: by the shape alone, so
// that who computes which part changes no bit.
int64_t grid_bias_parts(const GridAttentionShape& shape, int64_t sequences);

namespace ref {
void grid_attention_forward(const GridAttentionForward& op);
void grid_attention_backward(const GridAttentionBackward& op);
}  // namespace ref
namespace cpu {
void grid_attention_forward(const GridAttentionForward& op);
void grid_attention_backward(const GridAttentionBackward& op);
int64_t grid_attention_workspace_bytes(const GridAttentionShape& shape);
}  // namespace cpu
namespace cuda {
void grid_attention_forward(const GridAttentionForward& op);
void grid_attention_backward(const GridAttentionBackward& op);
}  // namespace cuda

}  // namespace brisk
