// Times real steps of a job, in a process of its own (doctor/measure/measured_run.h).
//
//   const StepTimes times = time_steps(job, size, here, {.folder = scratch.path() + "/1"});
//   times.step_seconds(size.tokens_per_step());
//
// UserError where the job is refused; RunFailed where its process ends otherwise.
#pragma once

#include <string>

#include "doctor/planning.h"

namespace brisk {

struct TimingOptions {
  std::string folder;           // for its files; made here, removed by the caller
  double seconds = 1.5;         // of steps that count, about
  bool times_the_rest = false;  // an evaluation and a checkpoint, too
  double longest_step = 2;      // seconds; of a job whose steps take longer, steps of fewer sequences are timed
};

StepTimes time_steps(const Job& job, const JobSize& size, const MachineRates& here, const TimingOptions& options);

// Before anything is timed: from FLOP, at a rate that steps usually reach.
double guessed_step_seconds(const JobSize& size, const MachineRates& here);

}  // namespace brisk
