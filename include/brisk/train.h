// Training: from a job to a trained model in a run directory.
//
//   brisk::TrainOptions options;
//   options.on_step = [](const brisk::Progress& progress) { std::cout << progress.step << " " << progress.loss << "\n"; };
//   const brisk::TrainResult result = brisk::train(runtime, job, options);
//   brisk::LoadedModel model(runtime, result.run_path);
//
// runtime.cancel(), from any thread, ends it after the step in work: it saves a checkpoint and returns, and another
// runtime resumes it. An evaluation in work is left, and made up for by the run that resumes. While the data is still
// prepared there is nothing to save: train() throws Cancelled. An exception that a callback throws ends the training
// without saving.
#pragma once

#include <brisk/error.h>
#include <brisk/log.h>
#include <brisk/metrics.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace brisk {

class Ranks;
class Runtime;
class TrainingJob;

// Callbacks come from the thread that called train().
struct TrainOptions {
  bool resume = false;     // from the last checkpoint in the run directory
  bool overwrite = false;  // replaces a run that the directory holds
  bool dry_run = false;    // everything before the first step; the run directory stays as it is
  Ranks* ranks = nullptr;  // processes that train it together (brisk/ranks.h); none: this one alone
  std::function<void()> before_first_step = {};  // everything is prepared: from here on there is something to save
  std::function<void(const Progress&)> on_step = {};
  std::function<void(const EvaluationMetrics&)> on_evaluation = {};
};

struct TrainResult {
  bool interrupted = false;  // by Runtime::cancel(): saved, and can be resumed
  std::string run_path;
  std::string ended;                 // "finished", "early stopping", "interrupted", "dry run"
  std::optional<int64_t> last_step;  // that was logged (training.logging_steps)
  double loss = Metric::kNone;       // of that step
  std::optional<EvaluationMetrics> last_evaluation, best_evaluation;
  std::string best_by;  // the metric that makes it the best
};

BRISK_API TrainResult train(Runtime& runtime, const TrainingJob& job, const TrainOptions& options = {});

}  // namespace brisk
