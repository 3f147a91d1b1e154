#include "doctor/measure/first_loss.h"

#include <cmath>

namespace brisk {

double first_loss_of_a_new_model(const ParameterStore& store, int64_t entries) {
  constexpr double kSmallVariance = 0.5;  // adds half of it to the loss
  for (const auto& parameter : store.all()) {
    const ParameterSpec& spec = parameter->spec;
    if (!spec.multiplies || spec.hidden || spec.rows < entries || spec.initial.kind != Initial::Kind::normal) continue;
    // Of an input of unit variance, as a norm leaves it.
    const double variance = static_cast<double>(spec.cols) * spec.initial.deviation * spec.initial.deviation;
    if (variance > kSmallVariance) return -1;
  }
  return std::log(static_cast<double>(entries));
}

}  // namespace brisk
