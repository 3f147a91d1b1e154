#include "train/run/plan/plan_run_length.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "checkpoint/checkpoint.h"
#include "infer/optimizer_options.h"
#include "job/run_length.h"
#include "train/run/plan/allocation.h"

namespace brisk {

namespace {

// Returns the steps that should fit. All costs are guesses until they are measured.
double set_time_box(const RunPlan& plan, RunState& run, double peak_gflops, double seconds, double tokens_per_step) {
  constexpr double kUtilisation = 0.4;           // of the measured peak
  constexpr double kForwardShare = 0.4;          // of a step's time, which an evaluation takes for as many rows
  constexpr double kDiskBytesPerSecond = 300e6;  // of a checkpoint
  constexpr double kCopiedBytesPerSecond = 4e9;  // of the copy that is written while training goes on
  const TrainingOptions& training = plan.job.training;
  TimeBoxOptions options;
  options.seconds = seconds;
  options.schedule = schedule_of(training, TimeBox::kScheduleLength);
  if (training.warmup_steps >= 0) {
    options.warmup_steps = training.warmup_steps;
    options.schedule.warmup_steps = 0;
  }
  // What the first process measured counts in all of them: the rate of the first step depends on it.
  const double gflops = plan.processes().broadcast(peak_gflops);
  options.step_seconds = tokens_per_step * plan.flop_per_token * 1e-9 / (kUtilisation * std::max(1.0, gflops));
  options.save_seconds = static_cast<double>(checkpoint_bytes(plan.memory.saved_bytes)) / kDiskBytesPerSecond;
  options.exposed_save_seconds = plan.memory.copy_bytes > 0
                                     ? static_cast<double>(plan.memory.copy_bytes) / kCopiedBytesPerSecond
                                     : options.save_seconds;
  options.evaluation_steps = kForwardShare * static_cast<double>(plan.data.validation->all_rows()) / tokens_per_step;
  options.evaluate_every = training.eval_steps > 0    ? training.eval_steps
                           : training.eval_steps == 0 ? plan.steps_per_epoch
                                                      : 0;
  options.save_every = training.save_steps > 0    ? training.save_steps
                       : training.save_steps == 0 ? plan.steps_per_epoch
                                                  : 0;
  options.save_every_seconds = 60 * training.save_minutes;
  run.time_box.emplace(options, 0.0);
  return run.time_box->steps_left(plan.processes().broadcast(run.ledger.totals().seconds()));
}

int64_t whole_steps(double steps) {
  constexpr double kRounding = 1e-9;  // 0.1 epochs of 30 steps are 3 steps, and not 4
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(steps - kRounding)));
}

}  // namespace

std::optional<int64_t> steps_of_run(const TrainingOptions& training, int64_t steps_per_epoch, double tokens_per_step) {
  if (training.stop.empty()) return training.max_steps > 0 ? training.max_steps : training.num_epochs * steps_per_epoch;
  const RunLength stop = parse_run_length(training.stop, "training.stop");
  if (stop.unit == RunLength::Unit::seconds || stop.unit == RunLength::Unit::allocation) return {};
  return whole_steps(stop.unit == RunLength::Unit::epochs    ? stop.amount * static_cast<double>(steps_per_epoch)
                     : stop.unit == RunLength::Unit::updates ? stop.amount
                                                             : stop.amount / tokens_per_step);
}

double seconds_of_box(const TrainingOptions& training) {
  const RunLength stop = parse_run_length(training.stop, "training.stop");
  return stop.unit == RunLength::Unit::allocation ? seconds_left_to_train() : stop.amount;
}

void set_length(RunPlan& plan, RunState& run, const PeakMeter& peak) {
  const TrainingOptions& training = plan.job.training;
  const double tokens_per_step = plan.data.rows_per_epoch / static_cast<double>(plan.steps_per_epoch);
  if (const auto steps = steps_of_run(training, plan.steps_per_epoch, tokens_per_step)) {
    run.total_steps = *steps;
  } else {
    const double box = plan.processes().broadcast(plan.processes().is_first() ? seconds_of_box(training) : 0);
    run.total_steps = whole_steps(set_time_box(plan, run, peak.gflops(), box, tokens_per_step));
  }
  run.epochs = divide_up(run.total_steps, plan.steps_per_epoch);
  plan.schedule = schedule_of(training, run.total_steps);
  constexpr double kStepCost = 3, kStepCostOfFrozenLayers = 1.5;
  plan.evaluations = plan_evaluations(
      {.total_steps = run.total_steps,
       .steps_per_epoch = plan.steps_per_epoch,
       .training_rows = static_cast<double>(run.total_steps) * tokens_per_step,
       .validation_rows = static_cast<double>(plan.data.validation->all_rows()),
       .step_cost = plan.memory.trained_parameters < plan.memory.parameters ? kStepCostOfFrozenLayers : kStepCost,
       .every_epoch = training.early_stopping_patience > 0});
}

}  // namespace brisk
