#include <brisk/ranks.h>
#include <brisk/runtime.h>
#include <brisk/train.h>

#include "api/training_job.h"
#include "base/runtime.h"
#include "train/run/trainer.h"

namespace brisk {

TrainResult train(Runtime& runtime, const TrainingJob& job, const TrainOptions& options) {
  const RuntimeScope scope(runtime);
  const TrainOutcome outcome = train(resolved_job(job, options.resume),
                                     {.resume = options.resume,
                                      .overwrite = options.overwrite,
                                      .dry_run = options.dry_run,
                                      .processes = options.ranks != nullptr ? &options.ranks->group() : nullptr,
                                      .before_first_step = in_callers_mode(options.before_first_step),
                                      .on_step = in_callers_mode(options.on_step),
                                      .on_evaluation = in_callers_mode(options.on_evaluation)});
  const RunSummary& summary = outcome.summary;
  TrainResult result{.interrupted = outcome.interrupted,
                     .run_path = outcome.run_path,
                     .ended = summary.ended,
                     .last_evaluation = summary.last_evaluation,
                     .best_evaluation = summary.best_evaluation,
                     .best_by = summary.best_by};
  if (summary.last_step) {
    result.last_step = summary.last_step->step;
    result.loss = summary.last_step->loss();
  }
  return result;
}

}  // namespace brisk
