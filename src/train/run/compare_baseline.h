// The end of a run whose job knows the one that it was made of (`baseline` of the job, written by brisk doctor --apply): both
// side by side.
//
//   if (knows_baseline(job)) say_table(baseline_table(job.baseline, {.tokens_per_second = 8100, .epoch_seconds = 61}));
#pragma once

#include <string>

#include "base/metrics.h"
#include "job/job.h"

namespace brisk {

struct BaselineComparison {
  double tokens_per_second = 0;
  double epoch_seconds = 0;  // evaluations and checkpoints included, start-up left out
  Metrics best;              // of the best evaluation; empty: there was none
};

inline bool knows_baseline(const Job& job) { return job.baseline.tokens_per_second > 0; }

std::string baseline_table(const BaselineOptions& baseline, const BaselineComparison& now);

}  // namespace brisk
