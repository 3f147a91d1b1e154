// The jobs that a doctor measures: the user's with one key changed, without what interrupts the steps, on fewer sequences.
//
//   Job naive = naive_job(job, longest);
//   Job trial = with_setting(naive, "training.padding", "\"none\"");
//   MeasuredRun run(for_measuring(trial, facts), folder);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/judge/finding.h"
#include "job/job.h"

namespace brisk {

// `value` in JSON. UserError where the job does not allow it.
Job with_setting(const Job& job, const std::string& key, const std::string& value);
Job with_fix(const Job& job, const Fix& fix);  // and the keys that follow it

// Of a resolved job: a key's value as JSON, as a job file has it.
std::string setting_of(const Job& job, const std::string& key);

// How the notes began that brisk grew out of: one sequence at a time, padded to max_length, in fp32. The optimizer steps
// are the job's own.
Job naive_job(const Job& job);

struct MeasuringLength {
  int64_t warmup_steps = 0;        // of the run as the job has it
  int64_t sequences_per_step = 0;  // fewer than the job's where its steps take too long; 0: the job's own
  int64_t micro_batch_tokens = 0;  // that was measured for it (training.measure_micro_batch); 0: as the job says
};
// As it trains, without evaluations, checkpoints and samples, and without end: the rate stays at its peak after the
// warm-up.
Job for_measuring(const Job& job, const MeasuringLength& length);

}  // namespace brisk
