// metrics.jsonl: a line per logged step and per evaluation; and summary.json at the end.
//
//   MetricsLog log(run.metrics_path());
//   log.append(StepMetrics{.step = 10, .epoch = 1, .tokens = 40960, .metrics = step_metrics, ...});
//   log.append(EvaluationMetrics{.step = 10, .epoch = 1, .metrics = result.metrics, ...});
//   if (!log.problem().empty()) warn("{}", log.problem());
//   write_summary(run.summary_path(), summary);
//
// Numbers are printed with as many digits as it takes to read the same double back: loss curves are compared to the
// bit on this file. What is not finite is null.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/record_log.h"
#include "base/gpu/gpu_watch.h"
#include "base/metrics.h"
#include "optim/loss_scale.h"

namespace brisk {

struct StepMetrics {
  int64_t step = 0;
  int64_t epoch = 0;     // as the progress bar counts: from 1
  int64_t tokens = 0;    // so far
  Metrics metrics = {};  // the means since the last line: the loss first
  double learning_rate = 0;
  double gradient_norm = 0;
  double tokens_per_second = 0;
  double step_ms = 0;
  double seconds = 0;           // wall time of the run so far: start-up, evaluations and earlier processes included
  int64_t skipped_updates = 0;  // so far, by the divergence guard
  int64_t rollbacks = 0;
  std::optional<LossScale> loss_scale = {};  // of f16: as `skipped_steps` and `loss_scale`
  std::optional<GpuReading> gpu = {};        // the GPU's last reading, where there is one
  std::vector<GpuReading> gpus = {};   // of all ranks' GPUs on this machine, that one first, where there are several
  std::optional<double> padding = {};  // share of the rows computed since the last line, where the job asks for any
  // Of several ranks, the first one's, in a step since the last line: what it waited, and what computing hid.
  struct Communication {
    double exposed_ms = 0, hidden_ms = 0;
  };
  std::optional<Communication> communication = {};

  double loss() const { return metrics.value("loss"); }
};

// Without the newline.
std::string to_json_line(const StepMetrics& metrics);
std::string to_json_line(const EvaluationMetrics& evaluation);

class MetricsLog {
 public:
  explicit MetricsLog(std::string path) : file_(std::move(path)) {}

  // Each line is in the file when append returns, a full disk aside (base/files/record_log.h).
  void append(const StepMetrics& metrics) { file_.append(to_json_line(metrics) + "\n"); }
  void append(const EvaluationMetrics& evaluation) { file_.append(to_json_line(evaluation) + "\n"); }
  const std::string& problem() const { return file_.problem(); }  // empty: none
  void sync() { file_.sync(); }

 private:
  RecordLog file_;
};

constexpr const char* kEndedEarly = "early stopping";
constexpr const char* kDiverged = "diverged";

struct RunSummary {
  std::optional<StepMetrics> last_step;
  std::optional<EvaluationMetrics> last_evaluation;
  std::optional<EvaluationMetrics> best_evaluation;
  std::string best_by;  // the metric that makes it the best
  int64_t parameters = 0;
  int64_t model_bytes = 0;
  // Of the whole run, all its processes.
  std::vector<std::pair<std::string, double>> ledger;  // phase -> seconds, in the order of the table
  double wall_seconds = 0;
  double run_tokens_per_second = 0, sequences_per_second = 0;  // of the time that was training, not of the last line
  std::optional<double> padding = {};                          // share of the computed rows, where the job asks for any
  double gflops = 0;                                           // reached, per second
  double peak_gflops = 0;                                      // of the machine, measured
  double utilisation = 0;
  int64_t peak_memory_bytes = 0;     // of a process: on the GPU where it ran on one, CUDA's own memory included
  int64_t peak_allocated_bytes = 0;  // on a GPU: what brisk itself allocated there
  int64_t peak_own_bytes = 0;        // on a CPU: without the files it maps, as sampled
  int64_t planned_memory_bytes = 0;  // before the start, of what it would compute in
  int64_t processes = 1;             // one after the other: it was resumed
  int64_t world_size = 1;            // ranks that trained together, at the end
  // Of each of them, where there are several, in its last process.
  struct RankFigures {
    std::string host;
    double communication_seconds = 0;         // exposed: it waited for the others, or exchanged with them
    double hidden_communication_seconds = 0;  // while it computed
    double work_seconds = 0;                  // of its own in steps (train/run/rank_watch.h)
    int64_t bytes_sent = 0;                   // to the others
    int64_t peak_memory_bytes = 0;            // on the GPU where it ran on one
    std::optional<GpuSummary> gpu = {};
  };
  std::vector<RankFigures> ranks = {};
  struct SlowRank {
    int64_t rank = 0;
    std::string host;
    double times = 1;  // as long as the median of the others
  };
  std::optional<SlowRank> slow_rank = {};
  // Of the last process alone; in summary.json apart (`last_process`) where there were several.
  std::vector<std::pair<std::string, double>> process_ledger;
  double process_wall_seconds = 0, process_tokens_per_second = 0, process_utilisation = 0;
  double first_step_seconds = 0;       // from the start of the training to the end of its first step; 0: there was none
  std::optional<GpuSummary> gpu;       // of its steps
  double tokens_per_joule = 0;         // where the GPU's energy is known
  std::string precision, isa, device;  // isa: of a GPU, its name and compute capability
  int64_t threads = 0;
  int64_t skipped_updates = 0, rollbacks = 0;  // of the whole run
  std::optional<int64_t> skipped_steps = {};   // by loss scaling, where there is one
  int64_t checkpoints_saved = 0;               // by this process
  double checkpoint_write_seconds = 0;         // of their files; what training waited for is the ledger's `checkpoint`
  std::vector<std::pair<std::string, std::string>> fingerprints = {};  // of what was evaluated, by key
  std::string ended;                       // "finished", "early stopping", "interrupted", "diverged"
  int64_t diverged_at = 0;                 // the step that could not be made; 0: none
  std::vector<std::string> warnings = {};  // what is wrong with the model
};

// Fills last_step, last_evaluation and best_evaluation (that of `best_step`) from the lines of an earlier process.
// `kinds`: the metrics of the run's evaluations, without values.
void recall_metrics(const std::string& metrics_path, const Metrics& kinds, int64_t best_step, RunSummary& summary);

// One object: the keys of metrics.jsonl with their last values (`step` and `epoch` of the later line), `best` with
// those of the best evaluation, and the fields above by name.
std::string summary_to_json_text(const RunSummary& summary);
void write_summary(const std::string& path, const RunSummary& summary);
// Whether an earlier process wrote there that the run ended so, at this step.
bool summary_says(const std::string& path, int64_t step, const std::string& ended);

}  // namespace brisk
