// Dynamic loss scaling, for products in f16: its smallest number is 6e-8, and many gradients are smaller. So the loss
// is multiplied by a scale before backward and the gradient divided by it after, and the scale is as large as it can
// be: a step whose gradient is not finite is skipped and halves it, many good ones double it. It is a power of two, so
// that nothing else changes.
//
//   LossScale scale;                                  // saved with every checkpoint
//   numbers.loss_scale = scale.scale / targets;
//   scale.observe(std::isfinite(gradient_norm));
#pragma once

#include <algorithm>
#include <cstdint>

namespace brisk {

struct LossScale {
  static constexpr double kLeast = 1, kMost = 16777216;
  static constexpr int64_t kGoodSteps = 2000;

  double scale = 65536;
  int64_t good_steps = 0;     // since it changed
  int64_t skipped_steps = 0;  // in all

  // At the least a gradient that is not finite has another reason.
  bool can_fall() const { return scale > kLeast; }
  void observe(bool finite) {
    if (!finite) {
      ++skipped_steps;
      scale = std::max(kLeast, scale / 2);
      good_steps = 0;
    } else if (++good_steps == kGoodSteps) {
      scale = std::min(kMost, scale * 2);
      good_steps = 0;
    }
  }
  bool operator==(const LossScale&) const = default;
};

}  // namespace brisk
