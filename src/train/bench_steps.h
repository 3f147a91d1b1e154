// Training steps under the clock: the real loop, loader, clipping, optimizer and logging included.
//
//   const MeasuredSteps measured = measure_steps(engine, loader, {.seconds = 10});
#pragma once

#include <cstdint>

#include "base/ledger.h"
#include "data/loader.h"
#include "train/engine.h"

namespace brisk {

struct MeasureOptions {
  double seconds = 10;
  int64_t least_steps = 3;
  double rate = 3e-4;
};

struct MeasuredSteps {
  int64_t steps = 0, tokens = 0, sequences = 0;
  double median_seconds = 0;  // of a step
  double peak_gflops = 0;     // of the machine, sampled between the steps
  Ledger::Totals ledger;      // of the steps, without the samples
};

// After two steps to warm up.
MeasuredSteps measure_steps(Engine& engine, Loader& loader, const MeasureOptions& options);

}  // namespace brisk
