// A stretch of steps of one training, and what it says of itself: what a measured run (doctor/measure/measured_run.h)
// tells the doctor.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "base/machine/counters.h"

namespace brisk {

struct Block {
  int64_t steps = 0, micro_batches = 0, sequences = 0;
  double tokens = 0;  // real ones
  double rows = 0;    // computed, padding included
  double targets = 0;
  int64_t forward_passes = -1;  // of micro-batches; negative: not known
  double seconds = 0;
  std::vector<double> step_seconds;
  std::vector<double> step_losses;  // the mean of each step
  std::vector<double> step_tokens;  // real ones
  Ledger::Totals ledger;
  Counters counters;
  double gpu_busy_seconds = -1;  // of a GPU that was watched
  int64_t gpu_kernels = -1;

  // Seconds of one whole step's update: clipping and optimizer.
  double update_seconds() const;
  Block& operator+=(const Block& next);
};

nlohmann::ordered_json block_to_json(const Block& block);
Block block_from_json(const nlohmann::ordered_json& json);

}  // namespace brisk
