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

// Calls body(query, key) for the pairs of places that read this row of the table, by queries.
template <typename Body>
BRISK_HOST_DEVICE inline void for_pairs_of_bias_row(const GridWindows& windows, int32_t row, const Body& body) {
  const int32_t height = windows.window_height, width = windows.window_width, before = windows.before();
  const int32_t distances = (2 * height - 1) * (2 * width - 1), places = windows.places();
  if (row == distances) {  // the class row's, as the query
    for (int32_t key = before; key < places; ++key) body(0, key);
  } else if (row == distances + 1) {
    for (int32_t query = before; query < places; ++query) body(query, 0);
  } else if (row == distances + 2) {
    body(0, 0);
  } else {
    const int32_t down = row / (2 * width - 1) - (height - 1), across = row % (2 * width - 1) - (width - 1);
    for (int32_t query = 0; query < height * width; ++query) {
      const int32_t y = query / width - down, x = query % width - across;
      if (y >= 0 && y < height && x >= 0 && x < width) body(before + query, before + y * width + x);
    }
  }
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
