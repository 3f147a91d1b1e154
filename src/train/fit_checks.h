// Whether a job fits into this machine, before anything is allocated or written.
//
//   const MemoryPlan plan = refuse_what_cannot_fit(engine_options);   // UserError: "... would fit"
//   refuse_full_disk(setup);
#pragma once

#include "train/setup.h"

namespace brisk {

bool fits_in_memory(const EngineOptions& options);

// UserError where the memory is not there; it names the largest micro-batch that would fit, if one would.
MemoryPlan refuse_what_cannot_fit(const EngineOptions& options);

// UserError where the run's checkpoints need more than the disk has.
void refuse_full_disk(const TrainingSetup& setup);

}  // namespace brisk
