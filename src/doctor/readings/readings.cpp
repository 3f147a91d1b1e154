#include "doctor/readings/readings.h"

namespace brisk {

double Readings::attainable_update_seconds() const {
  double seconds = 0;
  if (machine.memory_gb_per_second > 0)
    seconds += static_cast<double>(model.optimizer_bytes) / (machine.memory_gb_per_second * 1e9);
  const bool on_gpu = !stretch.gpu.name.empty();
  const auto rate = machine.product_gflops.find(on_gpu ? "bf16" : "fp32");
  if (rate != machine.product_gflops.end() && rate->second > 0) seconds += model.optimizer_flop / (rate->second * 1e9);
  return seconds;
}

double Readings::attainable_tokens_per_second() const {
  const auto rate = machine.product_gflops.find(model.precision);
  if (rate == machine.product_gflops.end() || rate->second <= 0 || model.flop_per_token <= 0) return 0;
  const double tokens_per_step = stretch.steps > 0 ? stretch.tokens / static_cast<double>(stretch.steps) : 0;
  const double update = tokens_per_step > 0 ? attainable_update_seconds() / tokens_per_step : 0;
  return 1 / (model.flop_per_token / (rate->second * 1e9) + update);
}

double Readings::epoch_seconds() const {
  const double speed = stretch.tokens_per_second();
  return speed > 0 ? data.tokens / speed + course.seconds_per_epoch() : 0;
}

}  // namespace brisk
