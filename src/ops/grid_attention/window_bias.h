// window_bias: what grid_attention adds to the score of a key for its place and its query's, from a table with a row for each
// difference of places and a column for each head (Swin, BEiT).
//
//   y[h, i P + j] = table[(row of i - row of j + rows - 1) (2 cols - 1) + col of i - col of j + cols - 1, h]
//
// in windows of rows x cols; i is the query's place, j the key's. A class row has three more rows in the table: of its query and
// any key, of any query and its key, and of it and itself.
//
//   Value bias = window_bias(tape, table, windows);   // [H, P P]
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "ops/grid_attention/grid_windows.h"
#include "tensor/tensor.h"

namespace brisk {

// Rows of the table.
inline int64_t window_bias_rows(const GridWindows& windows) {
  return int64_t{2 * windows.window_height - 1} * (2 * windows.window_width - 1) + (windows.class_row ? 3 : 0);
}

// The row of the table for a query's place and a key's.
BRISK_HOST_DEVICE inline int32_t window_bias_row(const GridWindows& windows, int32_t query, int32_t key) {
  const int32_t height = windows.window_height, width = windows.window_width;
  if (windows.class_row) {
    const int32_t first = (2 * height - 1) * (2 * width - 1);
    if (query == 0) return key == 0 ? first + 2 : first;
    if (key == 0) return first + 1;
    --query, --key;
  }
  const int32_t down = query / width - key / width + height - 1;
  const int32_t across = query % width - key % width + width - 1;
  return down * (2 * width - 1) + across;
}

struct WindowBiasForward {
  GridWindows windows;
  Tensor table;  // [window_bias_rows, H] f32
  Tensor y;      // [H, P P] f32
};

struct WindowBiasBackward {
  GridWindows windows;
  Tensor dy;      // [H, P P] f32
  Tensor dtable;  // [window_bias_rows, H] f32
  bool dtable_adds = false;
};

namespace ref {
void window_bias_forward(const WindowBiasForward& op);
void window_bias_backward(const WindowBiasBackward& op);
}  // namespace ref
namespace cpu {
void window_bias_forward(const WindowBiasForward& op);
void window_bias_backward(const WindowBiasBackward& op);
}  // namespace cpu
namespace cuda {
void window_bias_forward(const WindowBiasForward& op);
void window_bias_backward(const WindowBiasBackward& op);
}  // namespace cuda

}  // namespace brisk
