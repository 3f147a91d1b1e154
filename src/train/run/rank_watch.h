// What several ranks of a run lose to each other: communication that computing hid and that it did not, for each line of the log,
// and a rank that computes longer than the others, for which all of them wait in every step.
//
//   RankWatch ranks(plan, run, resources);        // of one process alone, all of it does nothing
//   ranks.see(line);                              // where a line of the log is due: all ranks, after the same steps
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "train/record/metrics_log.h"
#include "train/run/setup.h"

namespace brisk {

// Time of a rank's own work in steps: neither waiting for others nor what is not done in every step.
double work_seconds(const Ledger::Totals& totals);

// Whether one of these ranks is slow: which, and how many times as long it takes as the median of the others.
struct SlowRank {
  int64_t rank = 0;
  double times = 1;
};
std::optional<SlowRank> find_slow_rank(const std::vector<double>& work_seconds);

class RankWatch {
 public:
  RankWatch(const RunPlan& plan, RunState& run, const RunResources& resources)
      : plan_(plan), run_(run), resources_(resources) {}

  // Adds to the line what its steps spent on communication; says once which rank is slow.
  void see(StepMetrics& line);

 private:
  struct Mark {
    Ledger::Totals totals;
    double hidden_seconds = 0;
    int64_t step = 0;
  };

  const RunPlan& plan_;
  RunState& run_;  // of its summary, the slow rank
  const RunResources& resources_;
  std::optional<Mark> last_;  // line
  double work_before_ = 0;    // the first line's steps touch memory for the first time: they do not count
};

}  // namespace brisk
