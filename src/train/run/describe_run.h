// What `brisk train` says before the first step: the data, the model, memory, the schedule and the machine.
//
//   describe_run(plan, run, resources);                 // tables on standard error
#pragma once

#include "train/run/setup.h"

namespace brisk {

// Writes the run's statistics.json, too.
void describe_run(const RunPlan& plan, const RunState& run, const RunResources& resources);

}  // namespace brisk
