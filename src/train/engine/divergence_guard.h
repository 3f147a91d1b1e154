// Nothing is lost to a bad step: updates that are outliers are skipped and counted, and a run that keeps producing
// them, or that forgets what it had learned, is told to go back.
//
//   DivergenceGuard guard(job.training, state.guard);                        // the state is the checkpoint's
//   StepResult result = engine.train_step(batch, step, rate * state.guard.rate_factor, ledger, guard.limits());
//   const DivergenceGuard::Verdict verdict = guard.observe(step, result);
//   if (verdict.skipped) warn("step {}: update skipped: {}", step, verdict.reason);
//   if (verdict.diverged) ...                                                // back to a checkpoint, at a lower rate
//
// Everything it decides is a function of the losses and gradient norms so far, so a resumed run decides the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/job.h"
#include "train/engine/engine.h"

namespace brisk {

// Kept in every checkpoint.
struct GuardState {
  std::vector<double> gradient_norms;  // of the last updates made, the oldest first; at most kGuardWindow
  std::vector<double> losses;          // of the last steps that were finite
  std::vector<int64_t> recent_skips;   // step numbers
  double first_loss = 0;               // of the run's first finite step; 0: none yet
  double lowest_loss = 0;              // that, or the lowest median of `losses` so far
  int64_t skipped = 0, rollbacks = 0;  // of the whole run, what was rolled back included
  double rate_factor = 1;              // the schedule's rate is multiplied by it
  bool healthy = true;                 // when it was saved: a place to go back to
  bool operator==(const GuardState&) const = default;
};

constexpr size_t kGuardWindow = 64;       // steps whose median is what is usual
constexpr size_t kGuardLeast = 32;        // with fewer, only what is not finite is an outlier
constexpr int64_t kGuardSkipWindow = 32;  // in so many steps ...
constexpr size_t kGuardSkips = 8;         // ... so many skipped updates are a divergence

class DivergenceGuard {
 public:
  // `state` must outlive the guard; it may be replaced by that of a checkpoint at any time.
  DivergenceGuard(const TrainingOptions& training, GuardState& state) : training_(training), state_(state) {}

  bool is_on() const { return training_.divergence_guard; }
  UpdateLimits limits() const;  // for the coming step; none where the guard is off

  struct Verdict {
    bool skipped = false, diverged = false;
    std::string reason;  // of either
  };
  Verdict observe(int64_t step, const StepResult& result);

  bool healthy() const;

  // Carries the counts of `now` over to the state of the checkpoint that the run goes back to, at half the rate.
  static GuardState after_rollback(GuardState saved, const GuardState& now);

 private:
  double loss_to_fear() const;  // a median above it means divergence

  const TrainingOptions& training_;
  GuardState& state_;
};

}  // namespace brisk
