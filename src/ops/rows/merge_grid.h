// merge_grid: a grid of half as many rows and columns, whose row has the columns of the four that it was made of (Swin's patch
// merging): those at (0, 0), (1, 0), (0, 1) and (1, 1), as (row, column) of the four, one after the other.
//
//   Value merged = merge_grid(tape, h, /*to_set=*/2, /*height=*/56, /*width=*/56);   // [S 28 28, 4 D] of row set 2
#pragma once

#include "base/host_device.h"
#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

struct MergedGrid {
  int32_t height = 2, width = 2;  // of the grid that is merged, both even

  BRISK_HOST_DEVICE int32_t rows() const { return height / 2 * (width / 2); }  // of a sequence, merged
  // The row, counted over all sequences, that is part `part` of merged row `row`.
  BRISK_HOST_DEVICE int64_t source(int64_t row, int32_t part) const {
    const int64_t sequence = row / rows(), at = row % rows();
    const int64_t y = at / (width / 2) * 2 + part % 2, x = at % (width / 2) * 2 + part / 2;
    return (sequence * height + y) * width + x;
  }
  // The other way.
  BRISK_HOST_DEVICE int64_t target(int64_t row, int32_t& part) const {
    const int64_t size = int64_t{height} * width, sequence = row / size;
    const int64_t y = row % size / width, x = row % width;
    part = static_cast<int32_t>(y % 2 + x % 2 * 2);
    return (sequence * (height / 2) + y / 2) * (width / 2) + x / 2;
  }
};

struct MergeGridForward {
  MergedGrid grid;
  Tensor x;     // [N, D]
  RowSet rows;  // of the merged rows
  Tensor y;     // [N / 4, 4 D], the type of x; 0 in rows of no sequence
};

struct MergeGridBackward {
  MergedGrid grid;
  Tensor dy;    // [N / 4, 4 D]
  RowSet rows;  // of x
  Tensor dx;    // [N, D]; without `adds` 0 in rows of no sequence
  bool dx_adds = false;
};

namespace ref {
void merge_grid_forward(const MergeGridForward& op);
void merge_grid_backward(const MergeGridBackward& op);
}  // namespace ref
namespace cpu {
void merge_grid_forward(const MergeGridForward& op);
void merge_grid_backward(const MergeGridBackward& op);
}  // namespace cpu
namespace cuda {
void merge_grid_forward(const MergeGridForward& op);
void merge_grid_backward(const MergeGridBackward& op);
}  // namespace cuda

}  // namespace brisk
