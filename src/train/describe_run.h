// What `brisk train` says before the first step: the data, the model, memory, the schedule and the machine.
#pragma once

#include "train/setup.h"

namespace brisk {

// Writes the run's statistics.json, too.
void describe_run(const TrainingSetup& setup);

}  // namespace brisk
