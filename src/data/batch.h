// What the loader hands to the trainer: one optimizer step, divided into ragged micro-batches (host memory).
#pragma once

#include <cstdint>
#include <vector>

namespace brisk {

// N rows of S sequences, back to back. Row n reads tokens[n] and predicts targets[n].
struct MicroBatch {
  std::vector<int32_t> tokens;    // [N]
  std::vector<int32_t> targets;   // [N], -1 = none
  std::vector<int32_t> starts;    // [S + 1]
  std::vector<int32_t> position;  // [N] position within the sequence
  std::vector<int32_t> sequence;  // [N] number of the sequence within the optimizer step
  int64_t longest = 0;            // T

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  int64_t sequences() const { return static_cast<int64_t>(starts.size()) - 1; }
};

// Where the data stands: the next step to deliver. Order is a pure function of the seed and the epoch, so this is all
// there is.
struct DataCursor {
  int64_t epoch = 0;
  int64_t step = 0;  // within the epoch
  bool operator==(const DataCursor&) const = default;
};

struct StepBatch {
  std::vector<MicroBatch> micro_batches;
  int64_t valid_tokens = 0;  // targets >= 0 of the whole step: the loss is divided by this
  int64_t sequences = 0;
  DataCursor cursor;  // of this step
  DataCursor next;    // of the one after it
  bool last_of_epoch = false;
};

}  // namespace brisk
