#include "train/run/rollback.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "checkpoint/fine_tuned.h"
#include "train/engine/divergence_guard.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/run_health.h"

namespace brisk {

namespace {

// How far the loss has to have fallen, in nats: a model that only knows which tokens are frequent has learned more.
constexpr double kHasLearned = 0.5;

// 0: the beginning.
int64_t step_to_go_back_to(const std::vector<CheckpointPath>& places) {
  int64_t otherwise = 0;
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    try {
      const GuardState guard = read_checkpoint_state(place->path).guard;
      if (guard.healthy) return place->step;
      if (guard.lowest_loss < guard.first_loss - kHasLearned) otherwise = place->step;
    } catch (const UserError&) {  // a damaged one is no place to go back to
    }
  }
  return otherwise;
}

// Empty: the beginning. All processes go back to the same step, whatever each can read.
std::string place_to_go_back_to(const RunPlan& plan) {
  const std::vector<CheckpointPath> places = list_checkpoints(plan.directory.path());
  const int64_t step = plan.processes().broadcast(step_to_go_back_to(places));
  if (step == 0) return {};
  const auto place = std::find_if(places.begin(), places.end(), [&](const auto& it) { return it.step == step; });
  if (place == places.end()) user_error("{}: the checkpoint of step {} is missing", plan.directory.path(), step);
  return place->path;
}

}  // namespace

int64_t roll_back(const RunPlan& plan, RunState& run, RunResources& resources) {
  Ledger::Hold hold(run.ledger, Phase::checkpoint);
  const CheckpointState now = run.state;
  const std::string& path = plan.directory.path();
  const std::string place = place_to_go_back_to(plan);
  if (place.empty()) {
    const EngineOptions options = resources.engine->options();
    resources.engine.reset();  // two would not fit into memory where one just does
    resources.engine.emplace(options);
    run.state = begin_run(plan.job, *resources.engine);
    if (plan.writes()) save_frozen(path, resources.engine->parameters());  // model.from may have changed since
  } else {
    run.state = restore_run(place, *resources.engine);
    resources.engine->parameters_changed();
  }
  CheckpointState& state = run.state;
  state.guard = DivergenceGuard::after_rollback(state.guard, now.guard);
  state.tuned_settings_json = now.tuned_settings_json;
  state.run_files = now.run_files;
  state.job_fingerprint = now.job_fingerprint;
  state.elapsed_seconds = now.elapsed_seconds;  // time does not go back
  state.evaluation_due = false;                 // it was made up for since
  if (run.time_box) run.time_box->go_back_to(state.progress);

  plan.processes().wait_for_all();  // all have read
  resources.metrics.reset();        // the file is replaced
  if (plan.writes()) {
    remove_checkpoints_after(path, state.step);
    plan.directory.cut_metrics(state.step);
  }
  plan.processes().wait_for_all();
  resources.metrics.emplace(plan.writes() ? plan.directory.metrics_path() : "");
  run.summary = {.slow_rank = run.summary.slow_rank,
                 .first_step_seconds = run.summary.first_step_seconds,
                 .checkpoints_saved = run.summary.checkpoints_saved,
                 .checkpoint_write_seconds = run.summary.checkpoint_write_seconds};
  recall_metrics(plan.directory.metrics_path(), plan.task->metrics(), state.best_step, run.summary);
  CheckpointSaver saver({.run = path, .processes = &plan.processes(), .own = resources.engine->own_range()});
  saver.begin(resources.engine->parameters(), state, SaveMode::at_once);
  if (const SavedCheckpoint saved = saver.take(); !saved.result.ok()) warn("{}", saved.result.problem);
  LoaderOptions from_here = plan.loader_options;
  from_here.start = state.cursor;
  resources.loader.reset();
  resources.loader.emplace(plan.data.train, from_here);
  return state.step;
}

std::string divergence_text(const Job& job, const GuardState& guard, const Engine& engine, int64_t step,
                            const StepResult& result, const std::string& reason) {
  const std::string tensor = result.finite() ? "" : engine.first_not_finite();
  const std::string what = result.finite()
                               ? fmt::format("training diverged: {}", reason)
                               : fmt::format("{} is not finite{}; the parameters are still those before this step",
                                             std::isfinite(result.loss_sum) ? "the gradient" : "the loss",
                                             tensor.empty() ? "" : fmt::format(" (first in {})", tensor));
  return fmt::format("step {}: {}{}. What helps: {}", step, what,
                     guard.rollbacks > 0 ? fmt::format("; {}, down to {:g} times the learning rate, did not help",
                                                       plural(guard.rollbacks, "rollback"), guard.rate_factor)
                                         : "",
                     stability_advice(job));
}

}  // namespace brisk
