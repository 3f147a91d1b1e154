// Taking a run that diverged back to a checkpoint from before.
//
//   const int64_t step = roll_back(plan, run, resources);   // state, parameters, loader, metrics: those of this step
//
// The checkpoint is saved anew with the guard's counts and the lower rate, so that a run killed afterwards goes on with
// them; a run killed before diverges again and goes back again. Either way the curve is the same.
#pragma once

#include <cstdint>
#include <string>

#include "train/run/setup.h"

namespace brisk {

// The newest checkpoint that was healthy when it was saved, the oldest that had learned something where none was, or
// the beginning of the run. Returns its step.
int64_t roll_back(const RunPlan& plan, RunState& run, RunResources& resources);

// Where going back is not allowed any more: what happened at `step`, and advice. `reason` is the guard's; empty without
// it.
std::string divergence_text(const Job& job, const GuardState& guard, const Engine& engine, int64_t step,
                            const StepResult& result, const std::string& reason);

}  // namespace brisk
