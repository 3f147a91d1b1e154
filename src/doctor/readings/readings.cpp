#include "doctor/readings/readings.h"

#include <algorithm>

namespace brisk {

double Readings::attainable_tokens_per_second() const {
  const auto rate = machine.product_gflops.find(model.precision);
  if (rate == machine.product_gflops.end() || rate->second <= 0 || model.flop_per_token <= 0) return 0;
  double seconds_per_token = model.flop_per_token / (rate->second * 1e9);
  const double tokens_per_step = stretch.steps > 0 ? stretch.tokens / static_cast<double>(stretch.steps) : 0;
  if (machine.memory_gb_per_second > 0 && tokens_per_step > 0)
    seconds_per_token +=
        static_cast<double>(model.optimizer_bytes) / (machine.memory_gb_per_second * 1e9) / tokens_per_step;
  return 1 / seconds_per_token;
}

double Readings::epoch_seconds() const {
  const double speed = stretch.tokens_per_second();
  return speed > 0 ? data.tokens / speed + course.seconds_per_epoch() : 0;
}

}  // namespace brisk
