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
  std::vector<int32_t> types;     // [N] token type: 1 for the second text of a pair; empty: none

  // The rows whose outputs matter, where those are not all: the first row of each text (classify), the masked ones
  // (mlm). P of them, grouped by sequence.
  struct Picked {
    std::vector<int32_t> source;    // [P] row that it was picked from; empty: there is no second set of rows
    std::vector<int32_t> starts;    // [S + 1]
    std::vector<int32_t> position;  // [P]
    std::vector<int32_t> sequence;  // [P]
    std::vector<int32_t> targets;   // [P] label, or token to guess
    std::vector<float> weights;     // [P] of the targets in the loss; empty: 1 each
    int64_t longest = 0;            // most rows of a sequence

    int64_t rows() const { return static_cast<int64_t>(source.size()); }
  } picked;

  // No sequence; the memory stays.
  void clear() {
    for (auto* column : {&tokens, &targets, &position, &sequence, &types, &picked.source, &picked.position,
                         &picked.sequence, &picked.targets}) {
      column->clear();
    }
    picked.weights.clear();
    starts.assign(1, 0);
    picked.starts.assign(1, 0);
    longest = picked.longest = 0;
  }

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
  double weight_sum = 0;     // or, where targets have weights, by this; valid_tokens where they have none
  int64_t sequences = 0;
  DataCursor cursor;  // of this step
  DataCursor next;    // of the one after it
  bool last_of_epoch = false;
};

}  // namespace brisk
