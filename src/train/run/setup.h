// Everything before the first step: data, tuned settings, checks of memory and disk, the engine (new or restored), the
// run's files.
//
//   TrainingSetup setup(job, request);          // UserError where the job cannot run; then nothing is left behind
//   StepBatch batch = setup.loader->next();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/gpu/gpu_watch.h"
#include "base/ledger.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_directory.h"
#include "data/batch/loader.h"
#include "infer/tuned_settings.h"
#include "job/job.h"
#include "job/run_length.h"
#include "models/model_costs.h"
#include "ops/peak/peak.h"
#include "optim/schedule.h"
#include "tensor/device.h"
#include "train/engine/engine.h"
#include "train/engine/process_group.h"
#include "train/record/metrics_log.h"
#include "train/run/cadence.h"
#include "train/run/time_box.h"
#include "train/run/trainer.h"
#include "train/task/task.h"

namespace brisk {

struct TrainingSetup {
  TrainingSetup(Job job, const TrainRequest& request);

  ProcessGroup& processes() const { return request.processes != nullptr ? *request.processes : single_process(); }
  const Clock& clock() const { return *request.clock; }
  // Wall time of the run, earlier processes included.
  double elapsed() { return elapsed_before + ledger.totals().seconds(); }

  // Where the run stands at step 0, and its first parameters; the engine is new.
  void begin();
  void recall_loss_scale();  // the engine's, from `state`

  Job job;
  TrainRequest request;
  Ledger ledger{Phase::start_up, *request.clock};
  RunDirectory directory;
  std::shared_ptr<Task> task;
  TaskData data;
  TunedSettings tuned;
  MemoryPlan memory;
  std::optional<GpuMemoryExplanation> memory_explanation;  // where a GPU trains
  std::unique_ptr<Engine> engine;
  CheckpointState state;
  LoaderOptions loader_options;
  std::unique_ptr<Loader> loader;
  std::unique_ptr<MetricsLog> metrics;
  Schedule schedule;
  RunSummary summary;  // of a resumed run: what its metrics say so far

  int64_t micro_batch_tokens = 0, steps_per_epoch = 0;
  // Of a time-boxed run they are what is expected.
  int64_t total_steps = 0, epochs = 0;
  EvaluationPlan evaluations;     // where the job has no eval_steps; not of a time box
  std::optional<RunLength> stop;  // where the job has one
  std::optional<TimeBox> time_box;
  double elapsed_before = 0;  // seconds, of earlier processes of the run
  std::vector<ComponentCost> costs;
  double flop_per_token = 0;
  std::unique_ptr<PeakMeter> peak;  // sampled now and then while the run goes on
  int64_t own_memory = 0;           // the most of the host's that was seen, without mapped files
  std::unique_ptr<GpuWatch> gpu;    // of a GPU whose driver tells something; else none
};

// What was evaluated, by what: "validation_fingerprint", "tokenizer_fingerprint" and, of a classifier, that of its
// classes. Runs in which they are the same can be compared (report/page/compare.h).
std::vector<std::pair<std::string, std::string>> fingerprints_of(const TrainingSetup& setup);

}  // namespace brisk
