#include "train/run/expectation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include "base/terminal/terminal.h"
#include "base/text/plural.h"

namespace brisk {

void time_evaluation(TrainingSetup& setup) {
  constexpr int64_t kSequences = 32;
  const Sequences& all = *setup.data.validation;
  if (all.empty()) return;
  double seconds = 0, rows = 0;
  for (int trial = 0; trial < 2; ++trial) {  // the first allocates
    const auto start = std::chrono::steady_clock::now();
    rows = static_cast<double>(setup.engine->evaluate(all, setup.ledger, kSequences).tokens);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  const double whole = setup.processes().broadcast(seconds * static_cast<double>(all.total_rows()) / rows);
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
