// A run that ends when its time is over, with its schedule complete: warm-up, decay, the last evaluation and the last
// checkpoint all lie inside the box.
//
//   TimeBox box({.seconds = 1800, .schedule = ..., .costs = guesses}, state.progress);
//   const double rate = box.rate(step, elapsed);        // before the step
//   box.step_took(seconds);
//   const bool last = box.advance(elapsed_now);         // there is no time for another
//
// The rate is a function of progress, 0 to 1, and not of the clock: each step moves progress by its share of what is
// left, 1 / (it and the steps that still fit), with the speed measured last. So progress never jumps or falls back when
// the machine becomes slower or faster, and arrives at 1 with the last step. It is kept in checkpoints; a resumed run
// goes on from there with the time that is left.
#pragma once

#include <cstdint>

#include "optim/schedule.h"

namespace brisk {

struct TimeBoxOptions {
  double seconds = 0;
  Schedule schedule;         // of kScheduleLength steps
  int64_t warmup_steps = 0;  // where the job counts them in steps; 0: the schedule has its own share
  // Seconds, guessed; measured values replace them.
  double step_seconds = 0, save_seconds = 0;
  double exposed_save_seconds = 0;  // of save_seconds, what steps wait for on the way
  double evaluation_steps = 0;      // an evaluation takes as long as so many steps
  // Steps from one to the next; 0: only at the end.
  int64_t evaluate_every = 0, save_every = 0;
  int64_t evaluations = 1;        // in place of evaluate_every: so many, evenly over the progress, the last at the end
  double save_every_seconds = 0;  // besides save_every; 0: never
};

class TimeBox {
 public:
  static constexpr int64_t kScheduleLength = 1 << 20;

  TimeBox(const TimeBoxOptions& options, double progress) : options_(options), progress_(progress) {}

  bool is_over() const { return progress_ >= 1; }
  double progress() const { return progress_; }
  double seconds() const { return options_.seconds; }
  void set_seconds(double seconds) { options_.seconds = seconds; }

  // The rate of the coming step (number `step` of the run), `elapsed` seconds of the box being used.
  double rate(int64_t step, double elapsed) const;

  // Steps that still fit, at least 1 unless the box is over.
  double steps_left(double elapsed) const;

  // The last evaluation comes so soon that one before it would say the same, and cost steps.
  bool ends_soon(double elapsed) const;

  void step_took(double seconds);
  // Whether the step that brought progress from `before` to where it is now is one to evaluate after; the last aside.
  bool evaluates(double before) const;
  void set_evaluations(int64_t count) { options_.evaluations = count; }

  void evaluation_took(double seconds) { evaluation_seconds_ = seconds; }
  // The last save is waited for from beginning to end; earlier ones may go on beside the steps.
  void save_took(double seconds, double exposed) {
    options_.save_seconds = seconds;
    options_.exposed_save_seconds = exposed;
  }

  // After a step: moves progress on. True where it was the last one.
  bool advance(double elapsed);

  // The run was taken back to a checkpoint; its time was not.
  void go_back_to(double progress) { progress_ = progress; }

 private:
  double fitting_steps(double elapsed) const;
  double evaluation_seconds() const;

  TimeBoxOptions options_;
  double progress_ = 0;
  double evaluation_seconds_ = -1;  // measured; negative: not yet
  int64_t steps_measured_ = 0;
};

}  // namespace brisk
