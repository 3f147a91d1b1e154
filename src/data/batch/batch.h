// What the loader hands to the trainer: one optimizer step, divided into ragged micro-batches (host memory).
//
//   StepBatch step = loader.next();
//   for (const MicroBatch& batch : step.micro_batches) ...      // batch.rows() tokens of batch.sequences() sequences
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brisk {

// N rows of S sequences, back to back. Row n reads tokens[n] and predicts targets[n].
//
// Where only some rows' outputs matter (a classifier's first rows, masked tokens) these are a second row set, `picked`,
// with as many sequences, and their targets are there: `targets` above may be empty.
struct MicroBatch {
  std::vector<int32_t> tokens;    // [N]
  std::vector<int32_t> targets;   // [N], -1 = none
  std::vector<int32_t> starts;    // [S + 1]
  std::vector<int32_t> position;  // [N] position within the sequence
  std::vector<int32_t> sequence;  // [N] number of the sequence within the optimizer step
  int64_t longest = 0;            // T
  std::vector<int32_t> types;     // [N] token types: 1 for the second text of a pair; empty: none
  std::vector<std::byte> inputs;  // [N, ...] numbers that a model reads in place of the tokens; empty: none

  struct Picked {
    std::vector<int32_t> source;      // [P] the row above that each is
    std::vector<int32_t> starts;      // [S + 1]
    std::vector<int32_t> position;    // [P] of the source row, within its sequence; so is
    std::vector<int32_t> sequence;    // [P]
    std::vector<int32_t> targets;     // [P] label or token to guess, -1 = none
    std::vector<float> weights;       // [P] of each in the loss; empty: all 1
    std::vector<float> soft_targets;  // [P, C] what a teacher says of each; empty: none
    std::vector<std::byte> inputs;    // [P, ...] as above, where these rows alone are read
    int64_t longest = 0;              // the most of one sequence
    int64_t rows() const { return static_cast<int64_t>(source.size()); }
  } picked;  // source empty: no second set

  // No sequence; the memory stays.
  void clear() {
    for (auto* column : {&tokens, &targets, &position, &sequence, &types, &picked.source, &picked.position,
                         &picked.sequence, &picked.targets}) {
      column->clear();
    }
    picked.weights.clear();
    picked.soft_targets.clear();
    inputs.clear();
    picked.inputs.clear();
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
  int64_t valid_tokens = 0;  // targets >= 0 of the whole step
  double weight_sum = 0;     // of the weights of these; 0: each weighs 1
  int64_t sequences = 0;
  DataCursor cursor;  // of this step
  DataCursor next;    // of the one after it
  bool last_of_epoch = false;

  // What the sum of losses is divided by.
  double loss_divisor() const { return weight_sum > 0 ? weight_sum : static_cast<double>(valid_tokens); }
};

}  // namespace brisk
