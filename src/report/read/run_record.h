// A run as its directory tells it: for pages and comparisons. Any run will do: finished, stopped, still running,
// killed, of an earlier brisk. What is not known is NaN or empty, and what was found wrong stands in `notes`.
//
//   const RunRecord run = read_run("runs/bible");      // UserError unless it is a run directory
//   if (!run.evaluations.empty()) best = run.best_evaluation()->metrics.value(run.best_by);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "report/read/class_results.h"
#include "report/read/run_settings.h"

namespace brisk {

struct StepPoint {  // a logged step of metrics.jsonl
  double step = kUnknown, epoch = kUnknown, tokens = kUnknown, seconds = kUnknown;
  double learning_rate = kUnknown, gradient_norm = kUnknown, tokens_per_second = kUnknown;
  std::vector<std::pair<std::string, double>> metrics = {};  // by name
  double metric(std::string_view name) const;  // what training itself logs of an evaluation's metrics; else unknown
};

struct EvaluationPoint {  // an evaluation of metrics.jsonl
  double step = kUnknown, epoch = kUnknown, tokens = kUnknown, seconds = kUnknown;
  Metrics metrics;
};

struct Sample {  // a line of samples.jsonl
  int64_t step = 0;
  std::string prompt, text;  // the text begins with the prompt
  bool ended = false;        // by the model itself
};

using PhaseSeconds = std::vector<std::pair<std::string, double>>;  // in the ledger's order

struct EpochTime {  // the stretches of ledger.jsonl that belong to an epoch
  int64_t epoch = 0, steps = 0, tokens = 0;
  double seconds = 0;
  PhaseSeconds ledger;
};

struct ProcessStart {  // a process that worked on the run
  int64_t step = 0;
  std::string time, host, cpu, system, isa, precision;
  double cores = kUnknown, logical_processors = kUnknown, threads = kUnknown, memory_bytes = kUnknown;
  double peak_gflops = kUnknown;
};

struct RunRecord {
  std::string path, name;
  std::string task = "language_model", best_by = "loss";  // as the job has them
  std::string
      status;  // finished, early stopping, interrupted, running, imported, unfinished: killed, or stopped by an error

  bool has_teacher = false;  // the training loss is mixed with that of a teacher's answers

  std::vector<StepPoint> steps;
  std::vector<EvaluationPoint> evaluations;
  Metrics metrics;       // that evaluations have, without values; as the run says, or as its lines show
  ClassResults classes;  // of a classifier's best evaluation
  std::vector<Sample> samples;
  std::vector<EpochTime> epochs;
  PhaseSeconds ledger;  // of the whole run
  std::vector<ProcessStart> processes;
  std::vector<Setting> settings;
  std::vector<std::string> notes;

  double step = kUnknown, total_steps = kUnknown, tokens = kUnknown, parameters = kUnknown;
  double seconds = kUnknown;  // wall time of all its processes
  double tokens_per_second = kUnknown, gflops = kUnknown, peak_gflops = kUnknown, utilisation = kUnknown;
  double peak_memory_bytes = kUnknown;
  double training_tokens = kUnknown, validation_tokens = kUnknown;  // of the corpus
  double skipped_updates = kUnknown, rollbacks = kUnknown;          // by the divergence guard
  std::string precision, isa;
  double threads = kUnknown;

  bool is_imported() const { return status == "imported"; }  // a model of another program: nothing was trained here
  const EvaluationPoint* best_evaluation() const;            // as best_by has it; nullptr: none
  const EvaluationPoint* last_evaluation() const;
  std::vector<Metric> shown_metrics() const { return metrics.shown(best_by); }  // that of best_by first
};

RunRecord read_run(const std::string& path);

}  // namespace brisk
