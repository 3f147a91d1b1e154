// The end of a run: summary.json, and what `brisk train` says last.
//
//   return end_run(plan, run, resources, watch, {.ended = "finished", .speed = speed});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/record/run_text.h"
#include "train/run/run_watch.h"
#include "train/run/setup.h"
#include "train/run/trainer.h"

namespace brisk {

struct RunEnd {
  std::string ended;  // "finished", "early stopping", "interrupted"
  bool interrupted = false;
  bool save_failed = false;           // the last checkpoint
  Speed speed;                        // of this process
  int64_t expected_steps = 0;         // of a time-boxed run; 0: it was not told
  std::vector<std::string> warnings;  // of what is wrong with the model (train/run/run_health.h)
};

// UserError where something could not be saved, after everything else is said.
TrainOutcome end_run(const RunPlan& plan, const RunState& run, const RunResources& resources, RunWatch& watch,
                     const RunEnd& end);

// The end of a run that diverged at `step`: summary.json and the ledger say so. `what` happened, and advice.
void end_diverged(const RunPlan& plan, const RunState& run, const RunResources& resources, RunWatch& watch, RunEnd end,
                  int64_t step, const std::string& what);

}  // namespace brisk
