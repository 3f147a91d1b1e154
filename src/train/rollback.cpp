#include "train/rollback.h"

#include "base/error.h"
#include "base/terminal.h"

namespace brisk {

namespace {

// Empty: the beginning.
std::string place_to_go_back_to(const std::string& run) {
  const std::vector<CheckpointPlace> places = list_checkpoints(run);
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    try {
      if (read_checkpoint_state(place->path).guard.healthy) return place->path;
    } catch (const UserError&) {  // a damaged one is no place to go back to
    }
  }
  return places.empty() ? "" : places.front().path;
}

}  // namespace

int64_t roll_back(TrainingSetup& setup) {
  Ledger::Hold hold(setup.ledger, Phase::checkpoint);
  const CheckpointState now = setup.state;
  const std::string run = setup.directory.path();
  const std::string place = place_to_go_back_to(run);
  if (place.empty()) {
    const EngineOptions options = setup.engine->options();
    setup.engine.reset();  // two would not fit into memory where one just does
    setup.engine = std::make_unique<Engine>(options);
    setup.begin();
  } else {
    setup.state = load_checkpoint(place, setup.engine->parameters());
    setup.engine->parameters_changed();
  }
  CheckpointState& state = setup.state;
  state.guard = DivergenceGuard::after_rollback(state.guard, now.guard);
  state.choices_json = now.choices_json;
  state.job_fingerprint = now.job_fingerprint;
  state.elapsed_seconds = now.elapsed_seconds;  // time does not go back
  if (setup.time_box) setup.time_box->go_back_to(state.progress);

  remove_checkpoints_after(run, state.step);
  setup.metrics.reset();  // the file is replaced
  setup.directory.cut_metrics(state.step);
  setup.metrics = std::make_unique<MetricsLog>(setup.directory.metrics_path());
  setup.summary = {};
  recall_metrics(setup.directory.metrics_path(), state.best_step, setup.summary);
  const SaveResult saved = save_checkpoint(run, setup.engine->parameters(), state);
  if (!saved.ok()) warn("{}", saved.problem);
  setup.loader_options.start = state.cursor;
  setup.loader.reset();
  setup.loader = std::make_unique<Loader>(setup.data.train_stream, setup.data.train.chunks, setup.loader_options);
  return state.step;
}

}  // namespace brisk
