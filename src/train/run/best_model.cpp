#include "train/run/best_model.h"

#include "base/metrics.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "checkpoint/checkpoint.h"

namespace brisk {

bool BestModel::see(const EvaluationMetrics& line) {
  CheckpointState& state = run_.state;
  if (!better(line.metrics, state.best_metrics, plan_.job.training.best_by)) {
    ++state.evaluations_without_improvement;
    return false;
  }
  before_ = Place{state.best_metrics, state.best_step, run_.summary.best_evaluation};
  state.best_metrics = line.metrics;
  state.best_step = state.step;
  state.evaluations_without_improvement = 0;
  run_.summary.best_evaluation = line;
  return true;
}

bool BestModel::patience_is_over() const {
  const int64_t patience = plan_.job.training.early_stopping_patience;
  return patience > 0 && run_.state.evaluations_without_improvement >= patience;
}

std::string BestModel::text() const {
  const Metrics metrics = plan_.task->metrics();
  Metric best = *metrics.find(plan_.job.training.best_by);
  best.value = run_.state.best_metrics.value(best.name);
  return fmt::format("validation {} {}", best.title(), best.text());
}

std::string BestModel::early_stopping_text() const {
  const Metrics metrics = plan_.task->metrics();
  return fmt::format("early stopping at step {}: no better validation {} in {}; the best was {} at step {}",
                     run_.state.step, metrics.find(plan_.job.training.best_by)->title(),
                     plural(run_.state.evaluations_without_improvement, "evaluation"), text(), run_.state.best_step);
}

void BestModel::saved(int64_t step) {
  if (step >= run_.state.best_step) before_.reset();
}

void BestModel::could_not_save(int64_t step) {
  if (!waits_for_save() || step < run_.state.best_step) return;
  run_.state.best_metrics = before_->metrics;
  run_.state.best_step = before_->step;
  run_.summary.best_evaluation = before_->line;
  before_.reset();
}

void BestModel::load(Engine& engine) {
  const CheckpointState& state = run_.state;
  if (state.best_step < 0 || state.best_step == state.step) return;
  Ledger::Scope scope(run_.ledger, Phase::checkpoint);
  for (const CheckpointPath& place : list_checkpoints(plan_.directory.path())) {
    if (place.step != state.best_step) continue;
    load_model(place.path, engine.parameters());
    engine.parameters_changed();
    say("loaded the best model (step {}, {})", state.best_step, text());
    return;
  }
  warn("the checkpoint of the best model, of step {} ({}), is gone; the model is that of step {}", state.best_step,
       text(), state.step);
}

}  // namespace brisk
