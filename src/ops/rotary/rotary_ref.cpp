#include <cmath>

#include "ops/element.h"
#include "ops/rotary/rotary.h"

namespace brisk::ref {

void rotary(const Rotary& op) {
  const double direction = op.inverse ? -1 : 1;
  for (int64_t r = 0; r < op.x.rows; ++r) {
    for (int64_t c = 0; c < op.rotated; c += 2) {
      const double share = static_cast<double>(c % op.head_width) / static_cast<double>(op.head_width);
      const double angle = direction * op.rows.position[r] * std::pow(double{op.theta}, -share);
      const double even = element(op.x, r, c), odd = element(op.x, r, c + 1);
      set_element(op.y, r, c, even * std::cos(angle) - odd * std::sin(angle));
      set_element(op.y, r, c + 1, even * std::sin(angle) + odd * std::cos(angle));
    }
    for (int64_t c = op.rotated; c < op.x.cols; ++c) set_element(op.y, r, c, element(op.x, r, c));
  }
}

}  // namespace brisk::ref
