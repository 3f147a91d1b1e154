#include "train/run/plan/expectation.h"

#include <cmath>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"

namespace brisk {

namespace {

// Seconds that an evaluation of all sequences would take; negative where it was cancelled.
double seconds_of_evaluation(const Sequences& all, const Clock& clock, Engine& engine, Ledger& ledger) {
  constexpr int64_t kSequences = 32;
  double seconds = 0, rows = 0;
  try {
    for (int trial = 0; trial < 2; ++trial) {  // the first allocates
      const int64_t start = clock.nanoseconds();
      rows = static_cast<double>(engine.evaluate(all, ledger, kSequences).tokens);
      seconds = clock.seconds_since(start);
    }
  } catch (const Cancelled&) {
    return -1;
  }
  return seconds * static_cast<double>(all.all_rows()) / rows;
}

}  // namespace

void time_evaluation(const RunPlan& plan, RunState& run, Engine& engine) {
  const Sequences& all = *plan.data.validation;
  if (all.empty()) return;
  const double whole = plan.processes().broadcast(seconds_of_evaluation(all, plan.clock(), engine, run.ledger));
  if (whole < 0) return;  // the run ends with this step
  run.time_box->evaluation_took(whole);
  if (plan.job.training.eval_steps < 0) run.time_box->set_evaluations(evaluations_in(run.time_box->seconds(), whole));
  constexpr double kMuch = 0.25;
  if (whole > kMuch * run.time_box->seconds()) {
    warn(
        "an evaluation of {} tokens takes about {}, much of the {} that training.stop allows; use less text in "
        "data.validation or a smaller data.validation_fraction",
        format_count(static_cast<double>(all.all_rows())), format_duration(whole), plan.job.training.stop);
  }
}

int64_t tell_expectation(const RunPlan& plan, const RunState& run) {
  const double elapsed = plan.processes().broadcast(run.elapsed());
  const int64_t steps = run.state.step + std::llround(run.time_box->steps_left(elapsed));
  const double epochs = static_cast<double>(steps) / static_cast<double>(plan.steps_per_epoch);
  say("training.stop {}: about {}, {} tokens, {:.2f} epochs expected (estimated from the first steps); the schedule will "
      "be complete when the time is up",
      plan.job.training.stop, plural(steps, "step"), format_count(epochs * plan.data.rows_per_epoch), epochs);
  return steps;
}

}  // namespace brisk
