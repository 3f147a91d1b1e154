// mean_rows: the mean of each sequence's rows, from row `first` of it on. A sequence without such rows has 0.
//
//   Value pooled = mean_rows(tape, h, /*to_set=*/1, /*first=*/1);   // [S, D]: of the patches, without the class row
#pragma once

#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

struct MeanRowsForward {
  int64_t first = 0;
  Tensor x;     // [N, D]
  RowSet rows;  // of x
  Tensor y;     // [P, D], the type of x: a row for each sequence, and 0 in further rows
};

struct MeanRowsBackward {
  int64_t first = 0;
  Tensor dy;    // [P, D]
  RowSet rows;  // of x
  Tensor dx;    // [N, D]; without `adds` 0 in rows that are in no mean
  bool dx_adds = false;
};

namespace ref {
void mean_rows_forward(const MeanRowsForward& op);
void mean_rows_backward(const MeanRowsBackward& op);
}  // namespace ref
namespace cpu {
void mean_rows_forward(const MeanRowsForward& op);
void mean_rows_backward(const MeanRowsBackward& op);
}  // namespace cpu
namespace cuda {
void mean_rows_forward(const MeanRowsForward& op);
void mean_rows_backward(const MeanRowsBackward& op);
}  // namespace cuda

}  // namespace brisk
