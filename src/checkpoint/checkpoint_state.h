// Where a run stands, next to its tensors: state.json of a checkpoint.
//
//   CheckpointState state = read_checkpoint_state("runs/bible/checkpoints/step-00000123");
//
// The text ends with a checksum of all that is before it; a file of an earlier brisk has none. Doubles are kept as strings with as many digits as it takes to read the same bits back; infinity is one of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/metrics.h"
#include "checkpoint/guard_state.h"
#include "checkpoint/run_files.h"
#include "data/batch/batch.h"
#include "optim/loss_scale.h"

namespace brisk {

constexpr const char* kStateFile = "state.json";

// When the clock wants the next checkpoint, in steps (train/run/plan/cadence.h).
struct SaveSchedule {
  int64_t interval = 0;  // steps from one to the next; 0: not known yet
  int64_t next = 0;      // the step
};

// What the loss and the accuracy of some steps are made of, kept to the bit.
struct LossSums {
  double loss = 0, correct = 0, targets = 0, weights = 0;  // weights: of the targets; 1 each where they have none

  LossSums& operator+=(const LossSums& other);
  bool operator==(const LossSums&) const = default;
  double mean_loss() const;  // NaN: none of the steps was finite
  double accuracy() const;   // likewise
};

struct CheckpointState {
  int64_t step = 0;                             // optimizer steps done
  DataCursor cursor;                            // the next step's data
  int64_t tokens_seen = 0;                      // predicted tokens so far
  Metrics best_metrics;                         // values of the best evaluation; empty: there was none
  int64_t best_step = -1;                       // where that was; -1: not evaluated yet
  int64_t evaluations_without_improvement = 0;  // for early stopping
  uint64_t seed = 0;
  std::string tuned_settings_json = "{}";      // TunedSettings, a JSON object as text
  LossSums loss_sums;                          // since the last line of the log
  LossSums epoch_sums;                         // of the epoch, so that a resumed run has the whole of it
  int64_t epoch_steps = 0, epoch_skipped = 0;  // likewise: its steps, and those whose update was skipped
  double recent_loss = 0, recent_weights = 0;  // of the last steps, older ones fading out, for the progress line
  GuardState guard;
  std::optional<LossScale> loss_scale;  // of a run in f16
  double elapsed_seconds = 0;           // wall time of the run so far, all its processes
  double progress = 0;                  // of a time box; 1: it is over
  SaveSchedule saves;
  std::string model_checksum, optimizer_checksum;  // of the files next to it; empty: written before there were any
  FileChecksums run_files;                         // checkpoint/run_files.h
  std::string job_fingerprint;                     // of the training data (the name is that of the file's key)
  bool evaluation_due = false;                     // that of `step` was cancelled: it comes first
};

std::string checkpoint_state_to_json_text(const CheckpointState& state);

// UserError where the file is missing, changed, of another version, or says what no run could.
CheckpointState read_checkpoint_state(const std::string& checkpoint);

// The same from the content of a file; `path` is named in errors.
CheckpointState checkpoint_state_from_json_text(const std::string& text, const std::string& path);

}  // namespace brisk
