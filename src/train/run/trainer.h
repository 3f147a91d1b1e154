// `brisk train`: from a job to a trained model in a run directory.
//
//   Job job = load_job("job.json", overrides, notes);
//   resolve_defaults(job);
//   TrainOutcome outcome = train(job, {.resume = false});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "job/job.h"
#include "train/record/metrics_log.h"
#include "train/run/checkpoint_saver.h"

namespace brisk {

class ProcessGroup;
class Task;
struct RunPlan;
struct RunResources;
struct RunState;
struct StepBatch;
struct StepResult;

// Watches a training from inside, and may hold it up between two steps (doctor/measure).
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void prepared(const RunPlan& /*plan*/, RunState& /*run*/, RunResources& /*resources*/) {
  }  // before the first step
  // Of this step the gradient lies in the parameters when after_update() is called, on a GPU too.
  virtual bool wants_gradient(int64_t /*step*/) const { return false; }
  // After this step a GPU has nothing of the next one: it stands still.
  virtual bool stops_after(int64_t /*step*/) const { return false; }
  virtual void after_update(const StepBatch& /*batch*/, const StepResult& /*result*/) {}
  virtual void after_step() {}  // and what followed it: evaluation, samples, the beginning of a save
};

struct TrainRequest {
  bool resume = false;
  bool overwrite = false;              // a run in the same directory
  bool dry_run = false;                // everything before the first step, and nothing is written to the run directory
  std::shared_ptr<Task> task = {};     // none: that of the job, from the table
  ProcessGroup* processes = nullptr;   // that train together (train/engine/process_group.h); none: this one alone
  const Clock* clock = &kSystemClock;  // that the run's time is read from
  std::function<void()> before_first_step = {};  // everything is prepared: from here on there is something to save
  std::function<void(const Progress&)> on_step = {};
  std::function<void(const EvaluationMetrics&)> on_evaluation = {};
  RunObserver* observer = nullptr;
  bool trial = false;                     // a few steps to see whether they work: no weights are written
  CheckpointWrite write_checkpoint = {};  // none: to the run directory (train/run/checkpoint_saver.h)
};

struct TrainOutcome {
  bool interrupted = false;  // by Runtime::cancel(): saved, and can be resumed
  std::string run_path;
  RunSummary summary;
};

// Runtime::cancel() from another thread ends it after the step in work, with a checkpoint to resume from.
TrainOutcome train(Job job, const TrainRequest& request);

}  // namespace brisk
