// What the GPU's attention by cuDNN needs besides cuDNN: where ragged sequences lie, rows of no sequence, and the
// layout of the log-sum-exp.
#pragma once

#include "ops/attention/attention.h"

namespace brisk::cuda {

// lengths [batch] and, for each of `count` strides, offsets [batch + 1] = starts * stride, one after the other. Beyond
// the sequences there are: empty ones.
struct SequencePlaces {
  static constexpr int kMost = 7;
  int32_t* lengths = nullptr;
  int32_t* offsets = nullptr;  // the first of `count` arrays, each of round_up(batch + 1, 64)
  int64_t strides[kMost] = {};
  int count = 0;
};
int64_t places_of_offsets(int64_t batch);  // elements from one array of offsets to the next
void place_sequences(const RowSet& rows, int64_t batch, const SequencePlaces& places);

// Rows of no sequence become 0.
void clear_spare_rows(const RowSet& rows, const Tensor& t);

// log_sum_exp [N, H] to by_head [S, H, T] where all sequences have T rows, or back.
void sums_by_head(const RowSet& rows, const Tensor& log_sum_exp, float* by_head);
void sums_by_row(const RowSet& rows, const float* by_head, const Tensor& log_sum_exp);

}  // namespace brisk::cuda
