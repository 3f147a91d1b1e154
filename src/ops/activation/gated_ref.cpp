#include "ops/activation/gated.h"
#include "ops/element.h"

namespace brisk::ref {

void gated_forward(const GatedForward& op) {
  const int64_t width = op.y.cols;
  for (int64_t r = 0; r < op.y.rows; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      set_element(op.y, r, c, activate(op.activation, element(op.x, r, c)) * element(op.x, r, width + c));
    }
  }
}

void gated_backward(const GatedBackward& op) {
  const int64_t width = op.dy.cols;
  for (int64_t r = 0; r < op.dy.rows; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      const float a = element(op.x, r, c), b = element(op.x, r, width + c), dy = element(op.dy, r, c);
      set_element(op.dx, r, c, dy * b * activate_slope(op.activation, a));
      set_element(op.dx, r, width + c, dy * activate(op.activation, a));
    }
  }
}

}  // namespace brisk::ref
