// What the steps of a run add up to: since the last line of metrics.jsonl, in the epoch, in this process.
//
//   StepLog log(plan, run, resources);
//   log.count(result, seconds);                 // each step that stands
//   bar.update(log.progress(batch));
//   run.summary.last_step = log.line(...);      // every logging_steps: the mean since the last one
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/machine/machine.h"
#include "base/terminal/terminal.h"
#include "train/record/metrics_log.h"
#include "train/record/run_text.h"
#include "train/run/setup.h"

namespace brisk {

// Where in the data a step was.
struct StepPlace {
  DataCursor cursor;
  bool last_of_epoch = false;
};

class StepLog {
 public:
  StepLog(const RunPlan& plan, RunState& run, const RunResources& resources)
      : plan_(plan), run_(run), resources_(resources) {}

  void count(const StepResult& result, double seconds);
  void skipped();
  void sample_memory() { own_memory_ = std::max(own_memory_, own_memory_bytes()); }  // now and then
  // After the run went back to an earlier step: the epoch and the line begin anew.
  void went_back();

  Progress progress(const StepBatch& batch) const;
  // The line of this step, whose sums begin anew afterwards; `seconds`: of the run so far.
  StepMetrics line(const StepBatch& batch, double rate, double seconds);

  // What the epoch is so far, `last` being its last step: sums are of the whole epoch, the speed of what this process
  // did of it.
  EpochRow epoch_so_far(const DataCursor& last, const Ledger::Totals& now) const;
  // What it was; its counts begin anew.
  EpochRow end_epoch(const StepPlace& place, const Ledger::Totals& now);
  void begin_epoch() { epoch_start_ = run_.ledger.totals(); }
  const Ledger::Totals& epoch_start() const { return epoch_start_; }

  int64_t steps() const { return whole_.steps; }    // of this process
  bool has_early_steps() const;                     // the first few are done: an epoch's time can be told
  double early_seconds_per_token() const;           // of the first steps but the very first, which is slow
  Speed speed(const Ledger::Totals& totals) const;  // of this process

 private:
  std::vector<GpuReading> gpu_readings() const;
  struct Counts {
    int64_t tokens = 0, steps = 0, sequences = 0, rows = 0;
  };
  double seconds_left(const Ledger::Totals& now) const;
  Speed speed_of(const Counts& counts, const Ledger::Totals& totals) const;

  const RunPlan& plan_;
  RunState& run_;  // the sums in its state; of the summary, the time of the first step
  const RunResources& resources_;
  int64_t started_ = plan_.clock().nanoseconds();
  const Ledger::Totals process_start_ = run_.ledger.totals();
  Ledger::Totals epoch_start_ = process_start_;
  Counts whole_, epoch_, window_;  // window: since the last line
  double window_seconds_ = 0, recent_step_seconds_ = 0, last_gradient_norm_ = 0;
  int64_t early_tokens_ = 0;
  double early_seconds_ = 0;
  int64_t own_memory_ = 0;  // the most of the host's that was seen, without mapped files
};

}  // namespace brisk
