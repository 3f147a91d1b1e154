#include "train/run/run_end.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "checkpoint/checkpoint.h"
#include "infer/device_choice.h"
#include "report/read/run_record.h"
#include "train/record/metrics_log.h"

namespace brisk {

namespace {

std::vector<std::pair<std::string, double>> all_phases(const PhaseSeconds& ledger) {
  std::vector<std::pair<std::string, double>> all;
  for (int i = 0; i < kPhases; ++i) {
    const std::string name(phase_name(static_cast<Phase>(i)));
    const auto found =
        std::find_if(ledger.begin(), ledger.end(), [&](const auto& phase) { return phase.first == name; });
    all.emplace_back(name, found == ledger.end() ? 0.0 : found->second);
  }
  return all;
}

PhaseSeconds phases_of(const Ledger::Totals& totals) {
  PhaseSeconds ledger;
  for (int i = 0; i < kPhases; ++i) {
    const Phase phase = static_cast<Phase>(i);
    if (totals.seconds(phase) > 0) ledger.emplace_back(phase_name(phase), totals.seconds(phase));
  }
  return ledger;
}

// This process alone: where the run's ledger could not be written.
RunTotals totals_of(const Speed& speed, const Ledger::Totals& totals) {
  return {.ledger = phases_of(totals),
          .processes = 1,
          .steps = speed.steps,
          .tokens = speed.tokens,
          .sequences = speed.sequences,
          .seconds = totals.seconds(),
          .training_seconds = speed.training_seconds,
          .gigaflop = speed.gflops() * speed.training_seconds,
          .peak_gigaflop = speed.peak_gflops * speed.training_seconds};
}

// The speed of the whole run; `process`: of its last process.
Speed speed_of(const RunTotals& run, const Speed& process) {
  return {.seconds = run.seconds,
          .tokens = run.tokens,
          .steps = run.steps,
          .sequences = run.sequences,
          .flop_per_token = process.flop_per_token,
          .peak_gflops = run.tokens > 0 ? run.peak_gflops() : process.peak_gflops,
          .training_seconds = run.training_seconds,
          .gpu_bytes = process.gpu_bytes};
}

std::vector<EpochRow> epoch_rows(const RunRecord& run, const Speed& process) {
  std::vector<EpochRow> rows;
  for (const EpochTime& time : run.epochs) {
    if (time.steps == 0) continue;
    EpochRow row{.epoch = time.epoch,
                 .step = time.step,
                 .training_loss = time.training_loss,
                 .training_accuracy = time.training_accuracy,
                 .since_step = time.since_step};
    row.skipped_updates = time.skipped_updates;
    const int64_t before = rows.empty() ? 0 : rows.back().step;
    for (const EvaluationPoint& point : run.evaluations) {
      const auto step = static_cast<int64_t>(point.step);
      if (step > before && step <= time.step) row.evaluation = EvaluationMetrics{step, time.epoch, point.metrics, 0};
    }
    double start_up = 0;
    for (const auto& [phase, seconds] : time.ledger) start_up += phase == phase_name(Phase::start_up) ? seconds : 0;
    row.speed = {.seconds = time.seconds - start_up,
                 .tokens = time.tokens,
                 .steps = time.steps,
                 .sequences = time.sequences,
                 .flop_per_token = process.flop_per_token,
                 .peak_gflops = process.peak_gflops,
                 .training_seconds = training_seconds(time.ledger)};
    rows.push_back(std::move(row));
  }
  return rows;
}

void fill_summary(TrainingSetup& setup, const RunEnd& end, const RunTotals& run, const Ledger::Totals& process) {
  const auto known = [](double value) { return std::isfinite(value) ? value : 0.0; };
  setup.summary.parameters = setup.memory.parameters;
  setup.summary.model_bytes = setup.memory.parameters * size_of(DType::f32);
  setup.summary.ledger = all_phases(run.ledger);
  setup.summary.wall_seconds = run.seconds;
  setup.summary.run_tokens_per_second = known(run.tokens_per_second());
  setup.summary.sequences_per_second = known(run.sequences_per_second());
  setup.summary.gflops = known(run.gflops());
  setup.summary.peak_gflops = run.tokens > 0 ? known(run.peak_gflops()) : setup.peak->gflops();
  setup.summary.utilisation = known(run.utilisation());
  setup.summary.processes = run.processes;
  setup.summary.process_ledger = all_phases(phases_of(process));
  setup.summary.process_wall_seconds = process.seconds();
  setup.summary.process_tokens_per_second = end.speed.tokens_per_second();
  setup.summary.process_utilisation = end.speed.utilisation();
  setup.summary.ended = end.ended;
  setup.summary.warnings = end.warnings;
  const Device& device = setup.engine->parameters().device();
  setup.summary.peak_memory_bytes =
      std::max(setup.summary.peak_memory_bytes, device.is_cuda() ? device.memory().peak() : peak_memory_bytes());
  setup.summary.peak_allocated_bytes = device.memory().peak_allocated;
  if (!device.is_cuda()) setup.summary.peak_own_bytes = end.speed.own_bytes;
  setup.summary.planned_memory_bytes = end.speed.planned_bytes;
  if (setup.gpu) {
    setup.summary.gpu = setup.gpu->summary();
    const double joules = setup.summary.gpu->joules;
    if (joules > 0) setup.summary.tokens_per_joule = static_cast<double>(end.speed.tokens) / joules;
  }
  setup.summary.precision = precision_name(setup.tuned.compute_type, setup.tuned.products);
  setup.summary.isa = arithmetic_unit(device);
  setup.summary.device = device.name();
  setup.summary.threads = thread_pool().size();
  setup.summary.skipped_updates = setup.state.guard.skipped;
  setup.summary.rollbacks = setup.state.guard.rollbacks;
  if (const LossScale* scale = setup.engine->loss_scale()) setup.summary.skipped_steps = scale->skipped_steps;
  setup.summary.best_by = setup.job.training.best_by;
  setup.summary.fingerprints = fingerprints_of(setup);
}

// What all processes of the run add up to, and the summary with it.
struct WholeRun {
  WholeRun(TrainingSetup& setup, const RunWatch& watch, const RunEnd& end) : process(setup.ledger.totals()) {
    // The run's files have all its processes; where they could not be written, there is this one.
    const bool written = watch.problem().empty();
    if (written) record = read_run_figures(setup.directory.path());
    run = written ? record.totals : totals_of(end.speed, process);
    if (std::isfinite(record.peak_memory_bytes))
      setup.summary.peak_memory_bytes = static_cast<int64_t>(record.peak_memory_bytes);
    fill_summary(setup, end, run, process);
  }

  Ledger::Totals process;
  RunRecord record;
  RunTotals run;
};

bool device_is_gpu(const TrainingSetup& setup) { return setup.engine->parameters().device().is_cuda(); }

}  // namespace

void end_diverged(TrainingSetup& setup, RunWatch& watch, RunEnd end, int64_t step, const std::string& what) {
  end.ended = kDiverged;
  end.warnings = {what};
  setup.summary.diverged_at = step;
  watch.end(end.ended, step);
  WholeRun(setup, watch, end);
  try {
    write_summary(setup.directory.summary_path(), setup.summary);
  } catch (const UserError& error) {  // what happened is more important
    warn("{}", error.what());
  }
}

TrainOutcome end_run(TrainingSetup& setup, RunWatch& watch, const RunEnd& end) {
  watch.end(end.ended);
  const WholeRun whole(setup, watch, end);
  const auto& [totals, record, run] = whole;
  if (!end.interrupted && end.steps == 0 &&
      summary_says(setup.directory.summary_path(), setup.state.step, setup.summary.ended)) {
    say("{} already ended after step {} ({}): nothing to do; to go on, make it longer (--stop 2e, --set "
        "training.max_steps=N)",
        setup.directory.path(), setup.state.step, setup.summary.ended);
    return {end.interrupted, setup.directory.path(), setup.summary};
  }
  if (!watch.problem().empty()) warn("{}", watch.problem());
  std::string unsaved = end.save_failed ? "the last checkpoint" : "";
  try {
    write_summary(setup.directory.summary_path(), setup.summary);
  } catch (const UserError& error) {
    warn("{}", error.what());
    if (unsaved.empty()) unsaved = "summary.json";
  }
  constexpr size_t kEpochsShown = 10;
  const std::vector<EpochRow> rows = epoch_rows(record, end.speed);
  // Of a single epoch that came to its end, its line told everything.
  if (rows.size() > 1 || (!rows.empty() && end.ended != "finished"))
    say_table(epoch_table(thinned(rows, kEpochsShown), setup.job.training.best_by));
  const Speed speed = speed_of(run, end.speed);
  if (run.processes > 1) {
    say("this process, from step {}: {} in {}, {}", setup.state.step - end.steps, plural(end.steps, "step"),
        format_duration(totals.seconds()), speed_line(end.speed));
  }
  say("whole run{}:\n{}{}", run.processes > 1 ? fmt::format(", {} processes", run.processes) : "",
      ledger_table(run.ledger, speed, totals.sampled), speed_line(speed));
  if (setup.summary.checkpoints_saved > 0) {
    say("checkpoints: {} saved, written in {}; training waited {} for them", setup.summary.checkpoints_saved,
        format_duration(setup.summary.checkpoint_write_seconds), format_duration(totals.seconds(Phase::checkpoint)));
  }
  if (setup.summary.gpu) {
    const double tokens = setup.summary.tokens_per_joule;
    say("the GPU: {}{}", format_gpu(*setup.summary.gpu),
        tokens > 0 ? fmt::format(", {} tokens/J", format_count(tokens)) : "");
  }
  if (setup.summary.first_step_seconds > 0 && device_is_gpu(setup)) {
    say("the first step was done {} after the start of the training",
        format_duration(setup.summary.first_step_seconds));
  }
  if (setup.state.guard.skipped + setup.state.guard.rollbacks > 0) {
    say("divergence guard: {} skipped, {}; the learning rate is {:g} times the schedule's",
        plural(setup.state.guard.skipped, "update"), plural(setup.state.guard.rollbacks, "rollback"),
        setup.state.guard.rate_factor);
  }
  if (const LossScale* scale = setup.engine->loss_scale()) {
    say("loss scaling: {} skipped, the scale is {:g}", plural(scale->skipped_steps, "step"), scale->scale);
  }
  if (setup.time_box && !end.interrupted) {
    say("training.stop {}: ended after {}, {}{}", setup.job.training.stop, format_duration(setup.elapsed()),
        plural(setup.state.step, "step"),
        end.expected_steps > 0 ? fmt::format(" ({} were expected)", end.expected_steps) : "");
  }
  for (const std::string& warning : end.warnings) warn("{}", warning);
  if (!unsaved.empty()) {
    user_error("{}: {}, but {} could not be saved; fix that, then use --resume to continue from {}",
               setup.directory.path(), setup.summary.ended, unsaved,
               latest_checkpoint(setup.directory.path()).value_or("the beginning"));
  }
  return {end.interrupted, setup.directory.path(), setup.summary};
}

}  // namespace brisk
