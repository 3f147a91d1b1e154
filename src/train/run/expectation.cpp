#include "train/run/expectation.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"

namespace brisk {

namespace {

// Seconds that an evaluation of all sequences would take; negative where it was cancelled.
double seconds_of_evaluation(TrainingSetup& setup, const Sequences& all) {
  constexpr int64_t kSequences = 32;
  double seconds = 0, rows = 0;
  try {
    for (int trial = 0; trial < 2; ++trial) {  // the first allocates
      const int64_t start = setup.clock().nanoseconds();
      rows = static_cast<double>(setup.engine->evaluate(all, setup.ledger, kSequences).tokens);
      seconds = setup.clock().seconds_since(start);
    }
  } catch (const Cancelled&) {
    return -1;
  }
  return seconds * static_cast<double>(all.total_rows()) / rows;
}

}  // namespace

void time_evaluation(TrainingSetup& setup) {
  const Sequences& all = *setup.data.validation;
  if (all.empty()) return;
  const double whole = setup.processes().broadcast(seconds_of_evaluation(setup, all));
  if (whole < 0) return;  // the run ends with this step
  setup.time_box->evaluation_took(whole);
  if (setup.job.training.eval_steps < 0)
    setup.time_box->set_evaluations(evaluations_in(setup.time_box->seconds(), whole));
  constexpr double kMuch = 0.25;
  if (whole > kMuch * setup.time_box->seconds()) {
    warn(
        "an evaluation of {} tokens takes about {}, much of the {} that training.stop allows; use less text in "
        "data.validation or a smaller data.validation_fraction",
        format_count(static_cast<double>(all.total_rows())), format_duration(whole), setup.job.training.stop);
  }
}

int64_t tell_expectation(TrainingSetup& setup) {
  const double elapsed = setup.processes().broadcast(setup.elapsed());
  const int64_t steps = setup.state.step + std::llround(setup.time_box->steps_left(elapsed));
  const double epochs = static_cast<double>(steps) / static_cast<double>(setup.steps_per_epoch);
  say("training.stop {}: about {}, {} tokens, {:.2f} epochs expected (estimated from the first steps); the schedule will "
      "be complete when the time is up",
      setup.job.training.stop, plural(steps, "step"), format_count(epochs * setup.data.rows_per_epoch), epochs);
  return steps;
}

}  // namespace brisk
