// Everything before the first step, and the parts of a run that it makes: the plan, which nobody changes afterwards, the
// state, which the steps move on, and what they work with.
//
//   TrainingSetup setup(job, request);          // UserError where the job cannot run; then nothing is left behind
//   const RunPlan& plan = setup.plan();
//   ++setup.run.state.step;
//   StepBatch batch = setup.resources.loader->next();
//
// A function takes the parts it needs, as const where it only reads: its signature says what it may change.
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
#include "models/model_costs.h"
#include "ops/peak/peak.h"
#include "optim/schedule.h"
#include "tensor/device.h"
#include "train/engine/engine.h"
#include "train/engine/process_group.h"
#include "train/record/metrics_log.h"
#include "train/run/plan/cadence.h"
#include "train/run/plan/time_box.h"
#include "train/run/trainer.h"
#include "train/task/task.h"

namespace brisk {

// What a run is, decided before its first step: the job, its data, what was tuned, when it evaluates. Const ever after.
struct RunPlan {
  RunPlan(Job job, const TrainRequest& request);  // opens the directory

  ProcessGroup& processes() const { return request.processes != nullptr ? *request.processes : single_process(); }
  const Clock& clock() const { return *request.clock; }
  bool writes() const { return processes().is_first(); }  // the run directory, and what people read

  Job job;
  TrainRequest request;
  RunDirectory directory;
  std::shared_ptr<const Task> task;
  TaskData data;
  TunedSettings tuned;
  MemoryPlan memory;
  LoaderOptions loader_options;  // from where this process starts
  int64_t steps_per_epoch = 0;
  std::vector<ComponentCost> costs;
  double flop_per_token = 0;
  Schedule schedule;           // a time box has its own
  EvaluationPlan evaluations;  // where the job has no eval_steps; not of a time box
};

// Where a run stands, how far it should come, and what its summary will say. The Trainer moves it on, with its StepLog
// and BestModel; a rollback takes it back.
struct RunState {
  explicit RunState(const Clock& clock) : ledger(Phase::start_up, clock) {}

  double elapsed() const { return elapsed_before + ledger.totals().seconds(); }  // wall time of the whole run

  CheckpointState state;
  Ledger ledger;              // of this process
  double elapsed_before = 0;  // seconds, of earlier processes of the run
  std::optional<TimeBox> time_box;
  int64_t total_steps = 0, epochs = 0;  // of a time-boxed run, what is expected
  RunSummary summary;                   // of a resumed run, first what its metrics say so far
};

// What a run works with. The Trainer uses it, and a rollback makes some of it anew; everybody else only reads.
struct RunResources {
  std::optional<GpuMemoryExplanation> memory_explanation;  // where a GPU trains
  std::optional<Engine> engine;
  std::optional<Loader> loader;  // not of a dry run, nor metrics
  std::optional<MetricsLog> metrics;
  std::optional<PeakMeter> peak;                      // sampled now and then while the run goes on
  std::unique_ptr<GpuWatch> gpu;                      // of a GPU whose driver tells something; else none
  std::vector<std::unique_ptr<GpuWatch>> other_gpus;  // of the other ranks of this machine, in the first rank
};

class TrainingSetup {
 public:
  TrainingSetup(Job job, const TrainRequest& request);

  const RunPlan& plan() const { return plan_; }
  RunState run;

 private:
  RunPlan plan_;

 public:
  RunResources resources;  // last: the plan has the task that the engine calls
};

// The state of a run at step 0, and in the engine, which is new, its first parameters.
CheckpointState begin_run(const Job& job, Engine& engine);
// That of a checkpoint, and in the engine its parameters and loss scale; parameters_changed() is the caller's.
CheckpointState restore_run(const std::string& checkpoint, Engine& engine);

// What was evaluated, by what: "validation_fingerprint", "tokenizer_fingerprint" and, of a classifier, that of its
// classes. Runs in which they are the same can be compared (report/page/compare.h).
std::vector<std::pair<std::string, std::string>> fingerprints_of(const TaskData& data);

}  // namespace brisk
