// Where a run stands, next to its tensors: state.json of a checkpoint.
//
//   CheckpointState state = read_checkpoint_state("runs/bible/checkpoints/step-00000123");
//
// Doubles are kept as strings with as many digits as it takes to read the same bits back; infinity is one of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/metrics.h"
#include "checkpoint/guard_state.h"
#include "data/batch/batch.h"
#include "optim/loss_scale.h"

namespace brisk {

constexpr const char* kStateFile = "state.json";

// What a line of the log is made of, kept to the bit.
struct LossSums {
  double loss = 0, correct = 0, targets = 0, weights = 0;
  bool operator==(const LossSums&) const = default;
};

struct CheckpointState {
  int64_t step = 0;                             // optimizer steps done
  DataCursor cursor;                            // the next step's data
  int64_t tokens_seen = 0;                      // predicted tokens so far
  Metrics best_metrics;                         // values of the best evaluation; empty: there was none
  int64_t best_step = -1;                       // where that was; -1: not evaluated yet
  int64_t evaluations_without_improvement = 0;  // for early stopping
  uint64_t seed = 0;
  std::string choices_json = "{}";             // choices made by timing, a JSON object as text
  LossSums loss_sums;  // since the last line of the log
  GuardState guard;
  std::optional<LossScale> loss_scale;             // of a run in f16
  double elapsed_seconds = 0;                      // wall time of the run so far, all its processes
  double progress = 0;                             // of a time box; 1: it is over
  std::string model_checksum, optimizer_checksum;  // of the files next to it; empty: written before there were any
  std::string job_fingerprint;                     // of the training data (the name is that of the file's key)
  bool evaluation_due = false;                     // that of `step` was cancelled: it comes first
};

std::string checkpoint_state_to_json_text(const CheckpointState& state);

// UserError where the file is missing, cut short or of another version.
CheckpointState read_checkpoint_state(const std::string& checkpoint);

}  // namespace brisk
