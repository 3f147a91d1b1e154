#include "train/run/run_end.h"

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "checkpoint/checkpoint.h"
#include "infer/device_choice.h"
#include "train/record/metrics_log.h"

namespace brisk {

namespace {

void fill_summary(TrainingSetup& setup, const RunEnd& end, const Ledger::Totals& totals) {
  setup.summary.parameters = setup.memory.parameters;
  setup.summary.model_bytes = setup.memory.parameters * size_of(DType::f32);
  for (int i = 0; i < kPhases; ++i) {
    const Phase phase = static_cast<Phase>(i);
    setup.summary.ledger.emplace_back(std::string(phase_name(phase)), totals.seconds(phase));
  }
  setup.summary.wall_seconds = totals.seconds();
  setup.summary.run_tokens_per_second = end.speed.tokens_per_second();
  setup.summary.gflops = end.speed.gflops();
  setup.summary.peak_gflops = setup.peak->gflops();
  setup.summary.utilisation = end.speed.utilisation();
  const Device& device = setup.engine->parameters().device();
  setup.summary.peak_memory_bytes = device.is_cuda() ? device.memory().peak() : peak_memory_bytes();
  setup.summary.peak_allocated_bytes = device.memory().peak_allocated;
  if (!device.is_cuda()) setup.summary.peak_own_bytes = end.speed.own_bytes;
  setup.summary.planned_memory_bytes = end.speed.planned_bytes;
  if (setup.gpu) {
    setup.summary.gpu = setup.gpu->summary();
    const double joules = setup.summary.gpu->joules;
    if (joules > 0) setup.summary.tokens_per_joule = static_cast<double>(end.speed.tokens) / joules;
  }
  setup.summary.precision = precision_name(setup.choices.compute_type, setup.choices.products);
  setup.summary.isa = arithmetic_unit(device);
  setup.summary.device = device.name();
  setup.summary.threads = thread_pool().size();
  setup.summary.skipped_updates = setup.state.guard.skipped;
  setup.summary.rollbacks = setup.state.guard.rollbacks;
  if (const LossScale* scale = setup.engine->loss_scale()) setup.summary.skipped_steps = scale->skipped_steps;
  setup.summary.best_by = setup.job.training.best_by;
  setup.summary.ended = end.ended;
}

bool device_is_gpu(const TrainingSetup& setup) { return setup.engine->parameters().device().is_cuda(); }

}  // namespace

TrainOutcome end_run(TrainingSetup& setup, RunWatch& watch, const RunEnd& end) {
  const Ledger::Totals totals = setup.ledger.totals();
  fill_summary(setup, end, totals);
  if (!end.interrupted && end.steps == 0 &&
      summary_says(setup.directory.summary_path(), setup.state.step, setup.summary.ended)) {
    say("{} had ended after step {} ({}): nothing was left to do", setup.directory.path(), setup.state.step,
        setup.summary.ended);
    watch.end(setup.summary.ended);  // this process's line: the run is what it was
    return {end.interrupted, setup.directory.path(), setup.summary};
  }
  watch.end(setup.summary.ended);
  if (!watch.problem().empty()) warn("{}", watch.problem());
  std::string unsaved = end.save_failed ? "the last checkpoint" : "";
  try {
    write_summary(setup.directory.summary_path(), setup.summary);
  } catch (const UserError& error) {
    warn("{}", error.what());
    if (unsaved.empty()) unsaved = "summary.json";
  }
  constexpr size_t kEpochsShown = 10;
  if (end.epochs.size() > 1) say("{}", epoch_table(thinned(end.epochs, kEpochsShown), setup.job.training.best_by));
  say("{}{}", ledger_table(totals, end.speed), speed_line(end.speed));
  if (setup.summary.checkpoints_saved > 0) {
    say("checkpoints: {} saved, written in {}; training waited {} for them", setup.summary.checkpoints_saved,
        format_duration(setup.summary.checkpoint_write_seconds), format_duration(totals.seconds(Phase::checkpoint)));
  }
  if (setup.summary.gpu) {
    const double tokens = setup.summary.tokens_per_joule;
    say("the GPU: {}{}", format_gpu(*setup.summary.gpu),
        tokens > 0 ? fmt::format(", {} tokens a joule", format_count(tokens)) : "");
  }
  if (setup.summary.first_step_seconds > 0 && device_is_gpu(setup)) {
    say("the first step was done {} after the start of the process", format_duration(setup.summary.first_step_seconds));
  }
  if (setup.state.guard.skipped + setup.state.guard.rollbacks > 0) {
    say("divergence guard: {} updates skipped, {} times back to an earlier step; the rate is {:g} times the "
        "schedule's",
        setup.state.guard.skipped, setup.state.guard.rollbacks, setup.state.guard.rate_factor);
  }
  if (const LossScale* scale = setup.engine->loss_scale()) {
    say("loss scaling: {} steps skipped, the scale is {:g}", scale->skipped_steps, scale->scale);
  }
  if (setup.time_box && !end.interrupted) {
    say("training.stop {}: ended after {}, {} steps{}", setup.job.training.stop, format_duration(setup.elapsed()),
        setup.state.step, end.expected_steps > 0 ? fmt::format(" ({} were expected)", end.expected_steps) : "");
  }
  if (!unsaved.empty()) {
    user_error("{}: {}, but {} could not be saved; mend that and add --resume to go on from {}", setup.directory.path(),
               setup.summary.ended, unsaved, latest_checkpoint(setup.directory.path()).value_or("the beginning"));
  }
  return {end.interrupted, setup.directory.path(), setup.summary};
}

}  // namespace brisk
