#include "ops/element.h"
#include "ops/rows/rows_copy.h"

namespace brisk::ref {

namespace {

void copy_one_row(const Tensor& from, int64_t from_row, const Tensor& to, int64_t to_row, bool adds = false) {
  for (int64_t col = 0; col < from.cols; ++col) put_element(to, to_row, col, element(from, from_row, col), adds);
}

}  // namespace

void copy_rows(const Tensor& from, const Tensor& to, bool adds) {
  for (int64_t row = 0; row < from.rows; ++row) copy_one_row(from, row, to, row, adds);
}

void clear_rows(const Tensor& rows) {
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (int64_t col = 0; col < rows.cols; ++col) set_element(rows, row, col, 0);
  }
}

void append_to_cache(const Tensor& from, const RowSet& rows, const int32_t* begin, const Tensor& cache) {
  for (int64_t row = 0; row < rows.rows; ++row) {
    int64_t sequence = 0;
    while (rows.starts[sequence + 1] <= row) ++sequence;
    copy_one_row(from, row, cache, begin[sequence] + rows.position[row]);
  }
}

void move_rows(const Tensor& rows, const RowMove* moves, int64_t count, int64_t /*longest*/) {
  for (int64_t m = 0; m < count; ++m) {
    for (int64_t row = 0; row < moves[m].count; ++row) {
      copy_one_row(rows, moves[m].from + row, rows, moves[m].to + row);
    }
  }
}

void gather_last_rows(const Tensor& from, const RowSet& rows, const Tensor& to) {
  for (int64_t s = 0; s < rows.sequences; ++s) copy_one_row(from, rows.starts[s + 1] - 1, to, s);
}

}  // namespace brisk::ref
