#include "ops/element.h"
#include "ops/rows/pick_rows.h"

namespace brisk::ref {

void pick_rows_forward(const PickRowsForward& op) {
  for (int64_t r = 0; r < op.y.rows; ++r) {
    for (int64_t c = 0; c < op.y.cols; ++c) set_element(op.y, r, c, element(op.x, op.source[r], c));
  }
}

void pick_rows_backward(const PickRowsBackward& op) {
  for (int64_t r = 0; r < op.dx.rows && !op.dx_adds; ++r) {
    for (int64_t c = 0; c < op.dx.cols; ++c) set_element(op.dx, r, c, 0);
  }
  for (int64_t r = 0; r < op.dy.rows; ++r) {
    for (int64_t c = 0; c < op.dy.cols; ++c) put_element(op.dx, op.source[r], c, element(op.dy, r, c), true);
  }
}

}  // namespace brisk::ref
