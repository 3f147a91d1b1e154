// AdamW over all parameters that have a second moment (where Muon updates the hidden matrices, the others): one pass
// reads the gradient and rewrites the master, both moments and the bf16 compute copy.
//
//   const double scale = std::min(1.0, max_norm / gradient_norm(store));      // clipping
//   adamw_step(store, {.weight_decay = 0.1}, step, schedule.at(step), scale);
#pragma once

#include <cstdint>

#include "tensor/parameter.h"

namespace brisk {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // for parameters that decay: matrices, not norms and biases
};

// Optimizer step `step` (from 1) at `rate`; the gradient is multiplied by `gradient_scale` (clipping) on the way.
void adamw_step(const ParameterStore& store, const AdamWOptions& options, int64_t step, double rate,
                double gradient_scale);

// The Euclidean norm of the whole gradient.
double gradient_norm(const ParameterStore& store);

}  // namespace brisk
