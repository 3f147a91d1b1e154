#include "ops/element.h"
#include "ops/interpolate/interpolate.h"

namespace brisk::ref {

void interpolate_forward(const InterpolateForward& op) {
  const int64_t width = op.y.cols / op.share.cols;
  for (int64_t r = 0; r < op.y.rows; ++r) {
    for (int64_t c = 0; c < op.y.cols; ++c) {
      const double x = element(op.x, r, c), target = element(op.target, r, c);
      set_element(op.y, r, c, x + element(op.share, r, c / width) * (target - x));
    }
  }
}

void interpolate_backward(const InterpolateBackward& op) {
  const int64_t width = op.dy.cols / op.share.cols;
  for (int64_t r = 0; r < op.dy.rows; ++r) {
    for (int64_t g = 0; g < op.share.cols; ++g) {
      const double share = element(op.share, r, g);
      double sum = 0;
      for (int64_t c = g * width; c < (g + 1) * width; ++c) {
        const double dy = element(op.dy, r, c);
        sum += dy * (double{element(op.target, r, c)} - element(op.x, r, c));
        if (op.dx) put_element(op.dx, r, c, dy * (1 - share), op.dx_adds);
        if (op.dtarget) put_element(op.dtarget, r, c, dy * share, op.dtarget_adds);
      }
      if (op.dshare) put_element(op.dshare, r, g, sum, op.dshare_adds);
    }
  }
}

}  // namespace brisk::ref
