#include <algorithm>

#include "base/runtime.h"
#include "ops/element.h"
#include "ops/rows/mean_rows.h"

namespace brisk {

namespace {

// The rows of sequence s that its mean is of.
struct MeantRows {
  MeantRows(const RowSet& rows, int64_t s, int64_t first)
      : begin(s < rows.sequences ? std::min<int64_t>(rows.starts[s] + first, rows.starts[s + 1]) : 0),
        end(s < rows.sequences ? rows.starts[s + 1] : 0) {}
  int64_t begin, end;
  double share() const { return end > begin ? 1.0 / static_cast<double>(end - begin) : 0; }
};

void mean_of_columns(const MeanRowsForward& op, int64_t begin, int64_t end) {
  for (int64_t s = 0; s < op.y.rows; ++s) {
    const MeantRows rows(op.rows, s, op.first);
    for (int64_t c = begin; c < end; ++c) {
      double sum = 0;
      for (int64_t r = rows.begin; r < rows.end; ++r) sum += element(op.x, r, c);
      set_element(op.y, s, c, sum * rows.share());
    }
  }
}

void spread_gradient(const MeanRowsBackward& op, int64_t begin, int64_t end) {
  for (int64_t r = 0; r < op.dx.rows && !op.dx_adds; ++r) {
    for (int64_t c = begin; c < end; ++c) set_element(op.dx, r, c, 0);
  }
  for (int64_t s = 0; s < std::min(op.dy.rows, op.rows.sequences); ++s) {
    const MeantRows rows(op.rows, s, op.first);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t c = begin; c < end; ++c) {
        put_element(op.dx, r, c, rows.share() * element(op.dy, s, c), op.dx_adds);
      }
    }
  }
}

}  // namespace

namespace ref {
void mean_rows_forward(const MeanRowsForward& op) { mean_of_columns(op, 0, op.y.cols); }
void mean_rows_backward(const MeanRowsBackward& op) { spread_gradient(op, 0, op.dx.cols); }
}  // namespace ref

namespace cpu {  // once in a model: threads share the columns
void mean_rows_forward(const MeanRowsForward& op) {
  thread_pool().for_range(op.y.cols, 16, [&](int64_t begin, int64_t end, int) { mean_of_columns(op, begin, end); });
}
void mean_rows_backward(const MeanRowsBackward& op) {
  thread_pool().for_range(op.dx.cols, 16, [&](int64_t begin, int64_t end, int) { spread_gradient(op, begin, end); });
}
}  // namespace cpu

}  // namespace brisk
