// When a run evaluates and saves where its job does not say so in steps.
//
//   const EvaluationPlan plan = plan_evaluations({.total_steps = 900, .steps_per_epoch = 300, ...});
//   if (plan.is_due(step)) evaluate();
//
//   if (save_is_due(state.saves, options, step, last_of_epoch, seconds_since_the_last)) ...
//
// Evaluations decide which model is the best and when to stop early, so they are a function of the job and its data alone
// (of a time box: of its progress). Checkpoints follow the clock; what the clock decided is kept in them, so that a run
// that was killed saves where it would have.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/checkpoint_state.h"

namespace brisk {

struct EvaluationCosts {
  int64_t total_steps = 0, steps_per_epoch = 1;
  double training_rows = 0;    // of the whole run
  double validation_rows = 0;  // of one evaluation
  double step_cost = 3;        // of a row that is trained, in rows that are evaluated: forward and backward
  bool every_epoch = false;    // wanted whatever it costs: patience is counted in evaluations
};

// Steps at which a run evaluates, besides its last.
struct EvaluationPlan {
  int64_t total_steps = 0, steps_per_epoch = 1;
  int64_t per_epoch = 1;     // evenly spaced, the last at the end of the epoch
  int64_t every_epochs = 1;  // more than 1: at the end of every so many

  bool is_due(int64_t step) const;
  int64_t count() const;  // of the run, the last included
};

// About ten in a run, at the ends of epochs and evenly between them, as far as they take no more than a tenth of the
// training; one after each epoch may take a third of it.
EvaluationPlan plan_evaluations(const EvaluationCosts& costs);

// Of a time box: as many as may be spread over it where one takes so long.
int64_t evaluations_in(double box_seconds, double evaluation_seconds);

struct SaveOptions {
  double minutes = 5;  // 0: never by the clock
  int64_t steps_per_epoch = 1;
  bool after_epochs = true;  // those that are not much shorter than the time between two saves; without a clock: all
};

// `seconds`: since the last save, or the beginning.
bool save_is_due(const SaveSchedule& schedule, const SaveOptions& options, int64_t step, bool last_of_epoch,
                 double seconds);

// After a save that was due: the next one, when `steps` steps took `seconds`.
SaveSchedule next_save(const SaveOptions& options, int64_t step, int64_t steps, double seconds);

}  // namespace brisk
