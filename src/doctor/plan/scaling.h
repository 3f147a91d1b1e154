// From what was timed to what was not: another model of the same kind, another machine. Each part of a step is scaled by
// what makes it more: products by their FLOP, row-wise ops by width and layers, the update by its bytes and products.
//
//   StepTimes deeper = scaled_to_model(times, timed_size, deeper_size, here);
//   StepTimes there = scaled_to_machine(times, size, here, other);
#pragma once

#include <vector>

#include "doctor/planning.h"

namespace brisk {

StepTimes scaled_to_model(const StepTimes& times, const JobSize& timed, const JobSize& wanted,
                          const MachineRates& machine);

StepTimes scaled_to_machine(const StepTimes& times, const JobSize& size, const MachineRates& here,
                            const MachineRates& there, const std::string& precision_there);

// Products of a machine in a number format; 0: not known.
double products_in(const MachineRates& machine, const std::string& precision);

// The number format of a job there: its own, or what `auto` would choose by measured products.
std::string precision_on(const MachineRates& machine, const std::string& asked);

// What was timed, and the model it was.
struct TimedSize {
  JobSize size;
  StepTimes times;
  std::string what;  // "2 layers of 256"
};
// The one whose width, and then depth, is nearest.
const TimedSize& nearest_to(const std::vector<TimedSize>& timed, int64_t width, int64_t layers);

}  // namespace brisk
