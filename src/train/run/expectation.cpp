#include "train/run/expectation.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/terminal/terminal.h"

namespace brisk {

void time_evaluation(TrainingSetup& setup) try {
  constexpr int64_t kSequences = 32;
  const Sequences& all = *setup.data.validation;
  if (all.empty()) return;
  double seconds = 0, rows = 0;
  for (int trial = 0; trial < 2; ++trial) {  // the first allocates
    const int64_t start = setup.clock().nanoseconds();
    rows = static_cast<double>(setup.engine->evaluate(all, setup.ledger, kSequences).tokens);
    seconds = setup.clock().seconds_since(start);
  }
  const double whole = setup.processes().broadcast(seconds * static_cast<double>(all.total_rows()) / rows);
  setup.time_box->evaluation_took(whole);
  constexpr double kMuch = 0.25;
  if (whole > kMuch * setup.time_box->seconds()) {
    warn(
        "an evaluation of {} tokens takes about {}, much of the {} that training.stop allows; use less text in "
        "data.validation or a smaller data.validation_fraction",
        format_count(static_cast<double>(all.total_rows())), format_duration(whole), setup.job.training.stop);
  }
} catch (const Cancelled&) {  // the run ends with this step
}

int64_t tell_expectation(TrainingSetup& setup) {
  const double elapsed = setup.elapsed_before + setup.ledger.totals().seconds();
  const int64_t steps = setup.state.step + std::llround(setup.time_box->steps_left(elapsed));
  const double epochs = static_cast<double>(steps) / static_cast<double>(setup.steps_per_epoch);
  say("training.stop {}: should reach about {} steps, {} tokens, {:.2f} epochs with its schedule complete; an estimate "
      "from the speed of the first steps, and the schedule follows the clock",
      setup.job.training.stop, steps, format_count(epochs * setup.data.rows_per_epoch), epochs);
  return steps;
}

}  // namespace brisk
