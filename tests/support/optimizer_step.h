// An optimizer step over gradients that are there, for tests of models and optimizers without an engine.
//
//   AdamW adamw(store, {});
//   OptimizerStep step(store, adamw, /*max_norm=*/1);
//   const double norm = step.run(/*step=*/1, /*rate=*/1e-3);
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/optimizer/step_state.h"
#include "optim/optimizer.h"
#include "tensor/parameter.h"

namespace brisk::testing {

class OptimizerStep {
 public:
  OptimizerStep(const ParameterStore& store, Optimizer& optimizer, double max_norm = 0)
      : store_(store), optimizer_(optimizer), max_norm_(max_norm), state_(store.device()) {}

  // The norm of the gradient before clipping. The gradient is multiplied by 1 / `scaling`.
  double run(int64_t step, double rate, double scaling = 1) {
    StepNumbers settings{.scaling = static_cast<float>(scaling), .max_norm = max_norm_};
    optimizer_.set_rates(step, rate, settings);
    state_.begin_update(settings);
    state_.measure(store_.flat_gradient());
    state_.decide();
    optimizer_.update(state_.numbers());
    state_.publish();
    state_.finish();
    return std::sqrt(state_.result().squared_norm) / scaling;
  }

 private:
  const ParameterStore& store_;
  Optimizer& optimizer_;
  double max_norm_;
  StepState state_;
};

}  // namespace brisk::testing
