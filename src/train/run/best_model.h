// The best model of a run so far, by the metric that training.best_by names: which evaluation was better, how long ago,
// and the checkpoint that holds it.
//
//   BestModel best(plan, run);
//   if (best.see(line)) save();
//   if (best.patience_is_over()) ...                    // early stopping
//   best.load(engine);                                  // at the end: the engine has its weights
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/record/metrics_log.h"
#include "train/run/setup.h"

namespace brisk {

class BestModel {
 public:
  BestModel(const RunPlan& plan, RunState& run) : plan_(plan), run_(run) {}

  // Whether this evaluation is the best so far; it is counted either way.
  bool see(const EvaluationMetrics& line);
  bool patience_is_over() const;
  std::string early_stopping_text() const;

  // The best model is one that can be loaded: where it could not be saved, the best before it is kept instead. `step`:
  // of the checkpoint, which may have been begun before the best was found.
  void saved(int64_t step);
  void could_not_save(int64_t step);
  // What the next evaluation is compared with depends on how that goes.
  bool waits_for_save() const { return plan_.job.training.load_best_model_at_end && before_; }

  // Where it is not what the engine has already. Says what it did.
  void load(Engine& engine);

 private:
  std::string text() const;  // "validation accuracy 91.20 %"

  const RunPlan& plan_;
  RunState& run_;  // the values of the best, in its state and its summary
  struct Place {
    Metrics metrics;
    int64_t step;
    std::optional<EvaluationMetrics> line;
  };
  std::optional<Place> before_;  // while the best model is not saved yet
};

}  // namespace brisk
