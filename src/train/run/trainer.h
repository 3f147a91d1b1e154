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

class ProcessGroup;

struct TrainRequest {
  bool resume = false;
  ProcessGroup* processes = nullptr;  // that train together (train/engine/process_group.h); none: this one alone
};

struct TrainOutcome {
  bool interrupted = false;  // saved, and can be resumed
  std::string run_path;
  RunSummary summary;
};

TrainOutcome train(Job job, const TrainRequest& request);

}  // namespace brisk
