// What a time-boxed run should reach, told after its first steps.
//
//   const int64_t steps = tell_expectation(setup);
#pragma once

#include <cstdint>

#include "train/setup.h"

namespace brisk {

// Times a small part of the evaluation first: how long the one at the end will take decides how many steps fit. Returns
// the steps expected in all.
int64_t tell_expectation(TrainingSetup& setup);

}  // namespace brisk
