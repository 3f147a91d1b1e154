// Copies of rows that other ops need.
#pragma once

#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

// A range of rows that is copied to another place of the same matrix.
struct RowMove {
  int32_t from = 0, to = 0, count = 0;
};

namespace cpu {
// to = from, or to += from; the types may differ.
void copy_rows(const Tensor& from, const Tensor& to, bool adds);

// Zeros.
void clear_rows(const Tensor& rows);

// Writes each row of `from` into its sequence's part of a key/value cache: row begin[s] + position.
void append_to_cache(const Tensor& from, const RowSet& rows, const int32_t* begin, const Tensor& cache);

// Copies ranges of rows within a matrix. No row that one of them writes may be read or written by another. `moves`: [count]
// in device memory; `longest`: rows of the longest.
void move_rows(const Tensor& rows, const RowMove* moves, int64_t count, int64_t longest);

// to[s] = the last row of sequence s.
void gather_last_rows(const Tensor& from, const RowSet& rows, const Tensor& to);
}  // namespace cpu
namespace ref {
void copy_rows(const Tensor& from, const Tensor& to, bool adds);
void clear_rows(const Tensor& rows);
void append_to_cache(const Tensor& from, const RowSet& rows, const int32_t* begin, const Tensor& cache);
void move_rows(const Tensor& rows, const RowMove* moves, int64_t count, int64_t longest);
void gather_last_rows(const Tensor& from, const RowSet& rows, const Tensor& to);
}  // namespace ref
namespace cuda {
void copy_rows(const Tensor& from, const Tensor& to, bool adds);
void clear_rows(const Tensor& rows);
void append_to_cache(const Tensor& from, const RowSet& rows, const int32_t* begin, const Tensor& cache);
void move_rows(const Tensor& rows, const RowMove* moves, int64_t count, int64_t longest);
void gather_last_rows(const Tensor& from, const RowSet& rows, const Tensor& to);
}  // namespace cuda

}  // namespace brisk
