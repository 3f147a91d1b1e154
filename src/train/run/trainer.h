// `brisk train`: from a job to a trained model in a run directory.
//
//   Job job = load_job("job.json", overrides, notes);
//   resolve_defaults(job);
//   TrainOutcome outcome = train(job, {.resume = false});
#pragma once

#include <cstdint>
#include <string>

#include "job/job.h"
#include "train/record/metrics_log.h"

namespace brisk {

struct TrainRequest {
  bool resume = false;
};

struct TrainOutcome {
  bool interrupted = false;  // saved, and can be resumed
  std::string run_path;
  RunSummary summary;
};

TrainOutcome train(Job job, const TrainRequest& request);

}  // namespace brisk
