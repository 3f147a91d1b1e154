// What the divergence guard (train/engine/divergence_guard.h) remembers of a run, as every checkpoint keeps it.
#pragma once

#include <cstdint>
#include <vector>

namespace brisk {

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

}  // namespace brisk
