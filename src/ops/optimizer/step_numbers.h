// The numbers of one optimizer step: what the host sets, the sums of the loss, the gradient's norm, and what follows
// from them. They lie in the memory of the device that computes the step: a GPU decides and applies it without asking
// the host, and a captured graph that reads them there serves every step.
//
//   StepNumbers numbers{.max_norm = 1};
//   numbers.add_loss(sums, /*first=*/true);
//   numbers.squared_norm = 4;
//   numbers.decide();                 // gradient_scale is 0.5, applied 1
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/host_device.h"

namespace brisk {

struct StepNumbers {
  // What is summed over the parts of a step, first.
  static constexpr int kSums = 5;
  double squared_norm = 0;              // of the gradient as it lies there (`scaling`), by squared_norm()
  double loss_sum = 0, weight_sum = 0;  // over the step's micro-batches
  double correct = 0, targets = 0;
  float loss_scale = 1;   // from the host, as all below but the last two
  uint64_t step_key = 0;  // random_key({seed, step}), for dropout and stochastic rounding
  float rate = 0, muon_rate = 0;
  float correction1 = 1, correction2 = 1;  // 1 - beta^step
  float scaling = 1;    // of the gradient, in loss_scale: its norm and what updates take are divided by it
  double max_norm = 0;  // 0: no clipping
  // Above one of these the step is not applied.
  double norm_limit = std::numeric_limits<double>::infinity(), loss_limit = std::numeric_limits<double>::infinity();
  float gradient_scale = 1;  // the clipping factor, over `scaling`
  float applied = 0;         // 1, or 0: not finite or above a limit; the updates then change nothing

  // Adds a loss's sums [4] to the step's, or with `first` puts them there.
  BRISK_HOST_DEVICE void add_loss(const float* sums, bool first) {
    loss_sum = (first ? 0 : loss_sum) + sums[0];
    correct = (first ? 0 : correct) + sums[1];
    targets = (first ? 0 : targets) + sums[2];
    weight_sum = (first ? 0 : weight_sum) + sums[3];
  }

  BRISK_HOST_DEVICE double gradient_norm() const { return std::sqrt(squared_norm) / scaling; }
  BRISK_HOST_DEVICE double loss() const { return weight_sum > 0 ? loss_sum / weight_sum : loss_sum; }  // the mean

  // Sets gradient_scale and applied from the sums, the norm and the limits.
  BRISK_HOST_DEVICE void decide() {
    const double norm = gradient_norm();
    const double clipping = max_norm > 0 && norm > max_norm ? max_norm / norm : 1.0;
    gradient_scale = static_cast<float>(clipping / scaling);
    const bool applies = std::isfinite(loss_sum) && std::isfinite(norm) && norm <= norm_limit && loss() <= loss_limit;
    applied = applies ? 1.0f : 0.0f;
  }

  // Takes over what the host says of a step before its update: rates, corrections and limits.
  BRISK_HOST_DEVICE void set_update(const StepNumbers& settings) {
    rate = settings.rate;
    muon_rate = settings.muon_rate;
    correction1 = settings.correction1;
    correction2 = settings.correction2;
    scaling = settings.scaling;
    max_norm = settings.max_norm;
    norm_limit = settings.norm_limit;
    loss_limit = settings.loss_limit;
  }
};
static_assert(offsetof(StepNumbers, squared_norm) == 0 &&
                  offsetof(StepNumbers, targets) == (StepNumbers::kSums - 1) * sizeof(double),
              "the sums lie side by side");

}  // namespace brisk
