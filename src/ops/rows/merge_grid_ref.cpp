#include "ops/element.h"
#include "ops/rows/merge_grid.h"

namespace brisk::ref {

void merge_grid_forward(const MergeGridForward& op) {
  const int64_t real = op.rows.starts[op.rows.sequences], width = op.x.cols;
  for (int64_t row = 0; row < op.y.rows; ++row) {
    for (int32_t part = 0; part < 4; ++part) {
      for (int64_t c = 0; c < width; ++c) {
        set_element(op.y, row, part * width + c, row < real ? element(op.x, op.grid.source(row, part), c) : 0.0f);
      }
    }
  }
}

void merge_grid_backward(const MergeGridBackward& op) {
  const int64_t real = op.rows.starts[op.rows.sequences], width = op.dx.cols;
  for (int64_t row = 0; row < op.dx.rows; ++row) {
    int32_t part = 0;
    const int64_t from = op.grid.target(row, part);
    for (int64_t c = 0; c < width; ++c) {
      put_element(op.dx, row, c, row < real ? element(op.dy, from, part * width + c) : 0.0f, op.dx_adds);
    }
  }
}

}  // namespace brisk::ref
