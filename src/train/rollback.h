// Taking a run that diverged back to a checkpoint from before.
//
//   const int64_t step = roll_back(setup);     // setup.state, the parameters, the loader and the metrics are of that
//   step
//
// The checkpoint is saved anew with the guard's counts and the lower rate, so that a run killed afterwards goes on with
// them; a run killed before diverges again and goes back again. Either way the curve is the same.
#pragma once

#include <cstdint>

#include "train/setup.h"

namespace brisk {

// The newest checkpoint that was healthy when it was saved, the oldest there is where none was, or the beginning of
// the run. Returns its step.
int64_t roll_back(TrainingSetup& setup);

}  // namespace brisk
