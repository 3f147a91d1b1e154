#include <algorithm>
#include <cmath>

#include "ops/element.h"
#include "ops/softmax/softmax.h"

namespace brisk::ref {

void softmax_forward(const SoftmaxForward& op) {
  const int64_t width = op.x.cols / op.groups;
  for (int64_t r = 0; r < op.x.rows; ++r) {
    for (int64_t first = 0; first < op.x.cols; first += width) {
      double largest = element(op.x, r, first), sum = 0;
      for (int64_t c = first; c < first + width; ++c) largest = std::max<double>(largest, element(op.x, r, c));
      for (int64_t c = first; c < first + width; ++c) sum += std::exp(element(op.x, r, c) - largest);
      for (int64_t c = first; c < first + width; ++c) {
        const double logarithm = element(op.x, r, c) - largest - std::log(sum);
        set_element(op.y, r, c, op.logarithm ? logarithm : std::exp(logarithm));
      }
    }
  }
}

void softmax_backward(const SoftmaxBackward& op) {
  const int64_t width = op.y.cols / op.groups;
  for (int64_t r = 0; r < op.y.rows; ++r) {
    for (int64_t first = 0; first < op.y.cols; first += width) {
      double sum = 0;
      for (int64_t c = first; c < first + width; ++c) {
        sum += double{element(op.dy, r, c)} * (op.logarithm ? 1.0f : element(op.y, r, c));
      }
      for (int64_t c = first; c < first + width; ++c) {
        const double y = element(op.y, r, c), dy = element(op.dy, r, c);
        put_element(op.dx, r, c, op.logarithm ? dy - std::exp(y) * sum : y * (dy - sum), op.dx_adds);
      }
    }
  }
}

}  // namespace brisk::ref
