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
#include "report/read/data_facts.h"
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
  std::string prompt, text;    // the text begins with the prompt, or is what became of it
  bool ended = false;          // by the model itself
  std::string reference = {};  // what should have become of it; empty: there is none
  std::string image = {};      // path of the image whose text it is; empty: there is none
};

using PhaseSeconds = std::vector<std::pair<std::string, double>>;  // in the ledger's order

struct EpochTime {  // the stretches of ledger.jsonl that belong to an epoch
  int64_t epoch = 0, steps = 0, tokens = 0;
  double seconds = 0;
  PhaseSeconds ledger;
  int64_t sequences = 0, step = 0;  // step: of the run, its last
  // As the trainer summed them up over the whole epoch; not known of one that an earlier brisk wrote.
  double training_loss = kUnknown, training_accuracy = kUnknown;
  int64_t since_step = 0;  // the sums are of this step and later ones; 0: of the whole epoch
  int64_t skipped_updates = 0;
};

// Seconds that were training: everything but start-up, evaluation and checkpoints.
double training_seconds(const PhaseSeconds& ledger);

// What the processes of a run add up to, as ledger.jsonl tells it. Speeds are of the time that was training.
struct RunTotals {
  PhaseSeconds ledger;
  int64_t processes = 0, steps = 0, tokens = 0, sequences = 0;
  int64_t rows = 0;  // that were computed: more than tokens where the job asks for padding; 0: an earlier brisk's run
  double seconds = 0;
  double training_seconds = 0;             // of processes that trained
  double gigaflop = 0, peak_gigaflop = 0;  // that were done in it; that the measured peak would have done
  double total_steps = kUnknown;           // that the run will have, as its last process expected
  double steps_per_epoch = kUnknown;

  double per_second(double amount) const {
    return training_seconds > 0 && tokens > 0 ? amount / training_seconds : kUnknown;
  }
  double tokens_per_second() const { return per_second(static_cast<double>(tokens)); }
  double sequences_per_second() const { return per_second(static_cast<double>(sequences)); }
  double gflops() const { return per_second(gigaflop); }
  double peak_gflops() const { return per_second(peak_gigaflop); }  // the mean, where processes differ
  // The one meaning of the word: what was computed over what the measured peak would have computed meanwhile.
  double utilisation() const { return peak_gigaflop > 0 ? gigaflop / peak_gigaflop : kUnknown; }
};

struct ProcessStart {  // a process that worked on the run
  int64_t step = 0;
  std::string time, host, cpu, system, isa, precision;
  double cores = kUnknown, logical_processors = kUnknown, threads = kUnknown, memory_bytes = kUnknown;
  double peak_gflops = kUnknown;
};

struct RankTime {  // of a rank of the last process
  std::string host;
  double communication_seconds = kUnknown;  // in which it did nothing else
  double work_seconds = kUnknown;           // of its own
};

struct RunRecord {
  std::string path, name;
  std::string task = "language_model", best_by = "loss";  // as the job has them
  std::string
      status;  // finished, early stopping, interrupted, diverged, running, imported, unfinished: killed, or an error
  double diverged_at = kUnknown;      // the step that could not be made
  std::string status_text() const;    // "diverged at step 40"
  std::vector<std::string> warnings;  // what the run says is wrong with its model

  bool has_teacher = false;  // the training loss is mixed with that of a teacher's answers

  std::vector<StepPoint> steps;
  std::vector<EvaluationPoint> evaluations;
  Metrics metrics;       // that evaluations have, without values; as the run says, or as its lines show
  ClassResults classes;  // of a classifier's best evaluation
  DataFacts data;
  std::vector<Sample> samples;
  std::vector<EpochTime> epochs;
  PhaseSeconds ledger;  // of the whole run
  RunTotals totals;
  std::vector<ProcessStart> processes;
  std::vector<RankTime> ranks;               // of several that trained together
  double ranks_training_seconds = kUnknown;  // of each of them
  std::vector<Setting> settings;
  std::vector<std::string> notes;

  double step = kUnknown, total_steps = kUnknown, tokens = kUnknown, parameters = kUnknown;
  double seconds = kUnknown;                                             // wall time of all its processes
  double sequences_per_second = kUnknown, seconds_per_epoch = kUnknown;  // while training, as tokens_per_second
  double tokens_per_second = kUnknown, gflops = kUnknown, peak_gflops = kUnknown, utilisation = kUnknown;
  double peak_memory_bytes = kUnknown;
  double training_tokens = kUnknown, validation_tokens = kUnknown;  // of the corpus
  double skipped_updates = kUnknown, rollbacks = kUnknown;          // by the divergence guard
  std::string precision, isa;
  double threads = kUnknown;
  std::string device;                                                  // "cpu", "cuda:0"; empty: not told
  double gpu_busy_share = kUnknown, gpu_memory_used_bytes = kUnknown;  // of the last process; memory: the most, by all
  // Of every rank that had a GPU, where there were several.
  struct RankGpu {
    double rank = kUnknown, busy_share = kUnknown, memory_used_bytes = kUnknown,
           celsius = kUnknown;  // the last two: the most
  };
  std::vector<RankGpu> rank_gpus;
  // Of what was evaluated (train/run/setup.h); empty: the brisk that wrote the run did not tell.
  std::string validation_fingerprint, tokenizer_fingerprint, classes_fingerprint;

  bool is_imported() const { return status == "imported"; }  // a model of another program: nothing was trained here
  const EvaluationPoint* best_evaluation() const;            // as best_by has it; nullptr: none
  const EvaluationPoint* last_evaluation() const;
  std::vector<Metric> shown_metrics() const { return metrics.shown(best_by); }  // that of best_by first
};

RunRecord read_run(const std::string& path);

// The same without what job.json says: settings, task, best_by. For the trainer itself, at the end of a run.
RunRecord read_run_figures(const std::string& path);

}  // namespace brisk
