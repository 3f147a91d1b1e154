// How long a run is: optimizer steps, and the schedule over them, or a time box.
//
//   set_length(setup);                                  // "stop": "2e" of 500 steps an epoch
//   setup.total_steps;                                  // 1000
#pragma once

#include "train/run/setup.h"

namespace brisk {

// Sets total_steps, epochs, the schedule and, where the job says a time, the time box. The data, the engine and the
// peak are there by then.
void set_length(TrainingSetup& setup);

}  // namespace brisk
