#include "ops/activation/pointwise.h"
#include "ops/element.h"

namespace brisk::ref {

void pointwise_forward(const PointwiseForward& op) {
  for (int64_t r = 0; r < op.y.rows; ++r) {
    for (int64_t c = 0; c < op.y.cols; ++c) {
      set_element(op.y, r, c, op.factor * activate(op.activation, element(op.x, r, c)));
    }
  }
}

void pointwise_backward(const PointwiseBackward& op) {
  for (int64_t r = 0; r < op.dy.rows; ++r) {
    for (int64_t c = 0; c < op.dy.cols; ++c) {
      const float slope = op.activation == Activation::none ? 1.0f : activate_slope(op.activation, element(op.x, r, c));
      set_element(op.dx, r, c, op.factor * slope * element(op.dy, r, c));
    }
  }
}

}  // namespace brisk::ref
