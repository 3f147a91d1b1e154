#include "train/run/plan_run_length.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "checkpoint/checkpoint.h"
#include "infer/optimizer_options.h"

namespace brisk {

namespace {

// Returns the steps that should fit. All costs are guesses until they are measured.
double set_time_box(TrainingSetup& setup, double tokens_per_step) {
  constexpr double kUtilisation = 0.4;           // of the measured peak
  constexpr double kForwardShare = 0.4;          // of a step's time, which an evaluation takes for as many rows
  constexpr double kDiskBytesPerSecond = 300e6;  // of a checkpoint
  constexpr double kCopiedBytesPerSecond = 4e9;  // of the copy that is written while training goes on
  const TrainingOptions& training = setup.job.training;
  TimeBoxOptions options;
  options.seconds = setup.stop->amount;
  options.schedule = schedule_of(training, TimeBox::kScheduleLength);
  if (training.warmup_steps >= 0) {
    options.warmup_steps = training.warmup_steps;
    options.schedule.warmup_steps = 0;
  }
  // What the first process measured counts in all of them: the rate of the first step depends on it.
  const double gflops = setup.processes().broadcast(setup.peak->gflops());
  options.step_seconds = tokens_per_step * setup.flop_per_token * 1e-9 / (kUtilisation * std::max(1.0, gflops));
  options.save_seconds = static_cast<double>(checkpoint_bytes(setup.memory.saved_bytes)) / kDiskBytesPerSecond;
  options.exposed_save_seconds = setup.memory.copy_bytes > 0
                                     ? static_cast<double>(setup.memory.copy_bytes) / kCopiedBytesPerSecond
                                     : options.save_seconds;
  options.evaluation_steps = kForwardShare * static_cast<double>(setup.data.validation->total_rows()) / tokens_per_step;
  options.evaluate_every = training.eval_steps > 0    ? training.eval_steps
                           : training.eval_steps == 0 ? setup.steps_per_epoch
                                                      : 0;
  options.save_every = training.save_steps > 0    ? training.save_steps
                       : training.save_steps == 0 ? setup.steps_per_epoch
                                                  : 0;
  options.save_every_seconds = 60 * training.save_minutes;
  setup.time_box.emplace(options, 0.0);
  return setup.time_box->steps_left(setup.processes().broadcast(setup.ledger.totals().seconds()));
}

}  // namespace

void set_length(TrainingSetup& setup) {
  const TrainingOptions& training = setup.job.training;
  const double tokens_per_step = setup.data.rows_per_epoch / static_cast<double>(setup.steps_per_epoch);
  if (training.stop.empty()) {
    setup.total_steps = training.max_steps > 0 ? training.max_steps : training.num_epochs * setup.steps_per_epoch;
  } else {
    setup.stop = parse_run_length(training.stop, "training.stop");
    const double steps = setup.stop->unit == RunLength::Unit::epochs
                             ? setup.stop->amount * static_cast<double>(setup.steps_per_epoch)
                         : setup.stop->unit == RunLength::Unit::updates ? setup.stop->amount
                         : setup.stop->unit == RunLength::Unit::tokens  ? setup.stop->amount / tokens_per_step
                                                                        : set_time_box(setup, tokens_per_step);
    constexpr double kRounding = 1e-9;  // 0.1 epochs of 30 steps are 3 steps, and not 4
    setup.total_steps = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(steps - kRounding)));
  }
  setup.epochs = divide_up(setup.total_steps, setup.steps_per_epoch);
  setup.schedule = schedule_of(training, setup.total_steps);
  constexpr double kStepCost = 3, kStepCostOfFrozenLayers = 1.5;
  setup.evaluations = plan_evaluations(
      {.total_steps = setup.total_steps,
       .steps_per_epoch = setup.steps_per_epoch,
       .training_rows = static_cast<double>(setup.total_steps) * tokens_per_step,
       .validation_rows = static_cast<double>(setup.data.validation->total_rows()),
       .step_cost = setup.memory.trained_parameters < setup.memory.parameters ? kStepCostOfFrozenLayers : kStepCost,
       .every_epoch = training.early_stopping_patience > 0});
}

}  // namespace brisk
