#include "train/run/rollback.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "checkpoint/fine_tuned.h"
#include "train/engine/divergence_guard.h"
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
std::string place_to_go_back_to(const TrainingSetup& setup) {
  const std::vector<CheckpointPath> places = list_checkpoints(setup.directory.path());
  const int64_t step = setup.processes().broadcast(step_to_go_back_to(places));
  if (step == 0) return {};
  const auto place = std::find_if(places.begin(), places.end(), [&](const auto& it) { return it.step == step; });
  if (place == places.end()) user_error("{}: the checkpoint of step {} is missing", setup.directory.path(), step);
  return place->path;
}

}  // namespace

int64_t roll_back(TrainingSetup& setup) {
  Ledger::Hold hold(setup.ledger, Phase::checkpoint);
  const CheckpointState now = setup.state;
  const std::string run = setup.directory.path();
  const std::string place = place_to_go_back_to(setup);
  if (place.empty()) {
    const EngineOptions options = setup.engine->options();
    setup.engine.reset();  // two would not fit into memory where one just does
    setup.engine = std::make_unique<Engine>(options);
    setup.begin();
    save_frozen(run, setup.engine->parameters());  // model.from may have changed since a run that was resumed began
  } else {
    setup.state = load_checkpoint(place, setup.engine->parameters());
    setup.engine->parameters_changed();
    setup.recall_loss_scale();
  }
  CheckpointState& state = setup.state;
  state.guard = DivergenceGuard::after_rollback(state.guard, now.guard);
  state.tuned_settings_json = now.tuned_settings_json;
  state.run_files = now.run_files;
  state.job_fingerprint = now.job_fingerprint;
  state.elapsed_seconds = now.elapsed_seconds;  // time does not go back
  state.evaluation_due = false;                 // it was made up for since
  if (setup.time_box) setup.time_box->go_back_to(state.progress);

  remove_checkpoints_after(run, state.step);
  setup.metrics.reset();  // the file is replaced
  setup.directory.cut_metrics(state.step);
  setup.metrics = std::make_unique<MetricsLog>(setup.directory.metrics_path());
  setup.summary = {.first_step_seconds = setup.summary.first_step_seconds,
                   .checkpoints_saved = setup.summary.checkpoints_saved,
                   .checkpoint_write_seconds = setup.summary.checkpoint_write_seconds};
  recall_metrics(setup.directory.metrics_path(), setup.task->metrics(), state.best_step, setup.summary);
  const SaveResult saved = save_checkpoint(run, setup.engine->parameters(), state);
  if (!saved.ok()) warn("{}", saved.problem);
  setup.loader_options.start = state.cursor;
  setup.loader.reset();
  setup.loader = std::make_unique<Loader>(setup.data.train, setup.loader_options);
  return state.step;
}

std::string divergence_text(const TrainingSetup& setup, int64_t step, const StepResult& result,
                            const std::string& reason) {
  const std::string tensor = result.finite() ? "" : setup.engine->first_not_finite();
  const std::string what = result.finite()
                               ? fmt::format("training diverged: {}", reason)
                               : fmt::format("{} is not finite{}; the parameters are still those before this step",
                                             std::isfinite(result.loss_sum) ? "the gradient" : "the loss",
                                             tensor.empty() ? "" : fmt::format(" (first in {})", tensor));
  const GuardState& guard = setup.state.guard;
  return fmt::format("step {}: {}{}. What helps: {}", step, what,
                     guard.rollbacks > 0 ? fmt::format("; {}, down to {:g} times the learning rate, did not help",
                                                       plural(guard.rollbacks, "rollback"), guard.rate_factor)
                                         : "",
                     stability_advice(setup.job));
}

}  // namespace brisk
