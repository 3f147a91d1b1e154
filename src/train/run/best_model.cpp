#include "train/run/best_model.h"

#include "base/metrics.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "checkpoint/checkpoint.h"

namespace brisk {

bool BestModel::see(const EvaluationMetrics& line) {
  CheckpointState& state = setup_.state;
  if (!better(line.metrics, state.best_metrics, setup_.job.training.best_by)) {
    ++state.evaluations_without_improvement;
    return false;
  }
  before_ = Place{state.best_metrics, state.best_step, setup_.summary.best_evaluation};
  state.best_metrics = line.metrics;
  state.best_step = state.step;
  state.evaluations_without_improvement = 0;
  setup_.summary.best_evaluation = line;
  return true;
}

bool BestModel::patience_is_over() const {
  const int64_t patience = setup_.job.training.early_stopping_patience;
  return patience > 0 && setup_.state.evaluations_without_improvement >= patience;
}

std::string BestModel::text() const {
  const Metrics metrics = setup_.task->metrics();
  Metric best = *metrics.find(setup_.job.training.best_by);
  best.value = setup_.state.best_metrics.value(best.name);
  return fmt::format("validation {} {}", best.title(), best.text());
}

std::string BestModel::early_stopping_text() const {
  const Metrics metrics = setup_.task->metrics();
  return fmt::format("early stopping at step {}: no better validation {} in {}; the best was {} at step {}",
                     setup_.state.step, metrics.find(setup_.job.training.best_by)->title(),
                     plural(setup_.state.evaluations_without_improvement, "evaluation"), text(),
                     setup_.state.best_step);
}

void BestModel::saved(int64_t step) {
  if (step >= setup_.state.best_step) before_.reset();
}

void BestModel::could_not_save(int64_t step) {
  if (!waits_for_save() || step < setup_.state.best_step) return;
  setup_.state.best_metrics = before_->metrics;
  setup_.state.best_step = before_->step;
  setup_.summary.best_evaluation = before_->line;
  before_.reset();
}

void BestModel::load() {
  const CheckpointState& state = setup_.state;
  if (state.best_step < 0 || state.best_step == state.step) return;
  Ledger::Scope scope(setup_.ledger, Phase::checkpoint);
  for (const CheckpointPath& place : list_checkpoints(setup_.directory.path())) {
    if (place.step != state.best_step) continue;
    load_model(place.path, setup_.engine->parameters());
    setup_.engine->parameters_changed();
    say("loaded the best model (step {}, {})", state.best_step, text());
    return;
  }
  warn("the checkpoint of the best model, of step {} ({}), is gone; the model is that of step {}", state.best_step,
       text(), state.step);
}

}  // namespace brisk
