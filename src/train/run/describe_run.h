// What `brisk train` says before the first step: the data, the model, memory, the schedule and the machine.
//
//   const TrainingSetup setup(job, request);
//   describe_run(setup);                                // tables on standard error
#pragma once

#include "train/run/setup.h"

namespace brisk {

// Writes the run's statistics.json, too.
void describe_run(const TrainingSetup& setup);

}  // namespace brisk
