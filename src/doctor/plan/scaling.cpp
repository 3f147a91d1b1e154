#include "doctor/plan/scaling.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace brisk {

namespace {

struct Flop {
  double linear = 0, attention = 0, head = 0;
};

Flop flop_of(const JobSize& size) {
  Flop flop;
  for (const ComponentReadings& component : size.components) {
    double& kind = component.name == "attention"          ? flop.attention
                   : component.name.starts_with("head (") ? flop.head  // the loss's own product
                                                          : flop.linear;
    kind += component.flop_per_token;
  }
  return flop;
}

double ratio(double wanted, double timed) { return timed > 0 && wanted > 0 ? wanted / timed : 1; }

// Of an update, at the rates of a machine.
double attainable_update(const JobSize& size, const MachineRates& machine) {
  const double products = machine.on_gpu ? machine.bf16_products : machine.fp32_products;
  double seconds = 0;
  if (machine.copy_gb_per_second > 0) seconds += size.update_bytes / (1e9 * machine.copy_gb_per_second);
  if (products > 0) seconds += size.update_flop / (1e9 * products);
  return seconds;
}

double row_work(const JobSize& size) {  // of a token: layers, and the embedding
  return static_cast<double>((size.layers + 1) * size.width);
}

}  // namespace

StepTimes scaled_to_model(const StepTimes& times, const JobSize& timed, const JobSize& wanted,
                          const MachineRates& machine) {
  const Flop before = flop_of(timed), after = flop_of(wanted);
  StepTimes scaled = times;
  scaled.linear *= ratio(after.linear, before.linear);
  scaled.attention *= ratio(after.attention, before.attention);
  scaled.head *= ratio(after.head, before.head);
  scaled.rows *= ratio(row_work(wanted), row_work(timed));
  scaled.update *= ratio(attainable_update(wanted, machine), attainable_update(timed, machine));
  scaled.evaluation *= ratio(scaled.per_token(), times.per_token());
  scaled.save *= ratio(static_cast<double>(wanted.disk.checkpoint), static_cast<double>(timed.disk.checkpoint));
  return scaled;
}

double products_in(const MachineRates& machine, const std::string& precision) {
  return precision == "fp32" || precision == "tf32" ? machine.fp32_products : machine.bf16_products;
}

std::string precision_on(const MachineRates& machine, const std::string& asked) {
  if (asked == "auto" || products_in(machine, asked) <= 0)
    return machine.bf16_products > machine.fp32_products ? "bf16" : "fp32";
  return asked;
}

StepTimes scaled_to_machine(const StepTimes& times, const JobSize& size, const MachineRates& here,
                            const MachineRates& there, const std::string& precision_there) {
  const double products = ratio(products_in(here, times.precision), products_in(there, precision_there));
  const double memory = ratio(here.copy_gb_per_second, there.copy_gb_per_second);
  // Rows of a micro-batch are in the caches of a CPU: what limits there is arithmetic.
  const double rows = here.fp32_peak > 0 && there.fp32_peak > 0 ? ratio(here.fp32_peak, there.fp32_peak) : memory;
  StepTimes scaled = times;
  scaled.linear *= products;
  scaled.attention *= products;
  scaled.head *= products;
  scaled.rows *= rows;
  scaled.update *= ratio(attainable_update(size, there), attainable_update(size, here));
  scaled.evaluation *= ratio(scaled.per_token(), times.per_token());
  scaled.save *= memory;
  scaled.precision = precision_there;
  return scaled;
}

const TimedSize& nearest_to(const std::vector<TimedSize>& timed, int64_t width, int64_t layers) {
  const auto distance = [&](const TimedSize& each) {
    const auto apart = [](int64_t a, int64_t b) {
      return std::abs(
          std::log(static_cast<double>(std::max<int64_t>(1, a)) / static_cast<double>(std::max<int64_t>(1, b))));
    };
    return std::pair(apart(each.size.width, width), apart(each.size.layers, layers));
  };
  return *std::min_element(timed.begin(), timed.end(),
                           [&](const TimedSize& a, const TimedSize& b) { return distance(a) < distance(b); });
}

}  // namespace brisk
