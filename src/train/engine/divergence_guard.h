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

#include "checkpoint/guard_state.h"
#include "job/job.h"
#include "train/engine/engine.h"

namespace brisk {

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
