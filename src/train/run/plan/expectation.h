// What a time-boxed run should reach, told after its first steps.
//
//   time_evaluation(plan, run, engine);                   // after the first step
//   const int64_t steps = tell_expectation(plan, run);    // after a few
#pragma once

#include <cstdint>

#include "train/run/setup.h"

namespace brisk {

// From a small part of it: how long the evaluation at the end will take decides how many steps fit. Warns where it
// takes much of the box.
void time_evaluation(const RunPlan& plan, RunState& run, Engine& engine);

// Returns the steps expected in all.
int64_t tell_expectation(const RunPlan& plan, const RunState& run);

}  // namespace brisk
