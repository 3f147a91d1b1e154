// How long a run is: optimizer steps, and the schedule over them, or a time box.
//
//   set_length(plan, run, peak);                        // "stop": "2e" of 500 steps an epoch
//   run.total_steps;                                    // 1000
#pragma once

#include <cstdint>
#include <optional>

#include "ops/peak/peak.h"
#include "train/run/setup.h"

namespace brisk {

// Optimizer steps of a run; none where a time decides.
std::optional<int64_t> steps_of_run(const TrainingOptions& training, int64_t steps_per_epoch, double tokens_per_step);

// Of a run whose length is a time: the job's, or what the Slurm allocation leaves from now on.
double seconds_of_box(const TrainingOptions& training);

// Sets the plan's schedule and evaluations, and the run's total_steps, epochs and, where the job says a time, time box.
// Data, memory and costs are in the plan by then.
void set_length(RunPlan& plan, RunState& run, const PeakMeter& peak);

}  // namespace brisk
