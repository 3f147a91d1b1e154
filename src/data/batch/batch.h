// What the loader hands to the trainer: one optimizer step, divided into ragged micro-batches (host memory).
//
//   StepBatch step = loader.next();
//   for (const MicroBatch& batch : step.micro_batches) ...      // batch.rows() rows of batch.sequences() sequences
//   batch.sets[0].tokens;                                       // what a model reads; batch.sets[0].targets: predicts
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace brisk {

// A list of row sets with the same number of sequences each. A decoder's batch has one; a decoder that reads an
// encoder has two, source and target; where only some rows' outputs matter (a classifier's first rows, masked tokens)
// these are a set that is derived from another. Sets with rows of their own come first. A derived set without a source has as
// many rows for each sequence as the model says: a coarser grid of an image, or queries that are learned.
struct MicroBatch {
  // N rows of S sequences, back to back. A set has the columns that its model reads; the others are empty.
  struct Set {
    std::vector<int32_t> starts = {0};  // [S + 1]
    std::vector<int32_t> position;      // [N] position within the sequence; of a derived row: of its source row
    std::vector<int32_t> sequence;      // [N] number of the sequence within the optimizer step
    int64_t longest = 0;                // T
    std::vector<int32_t> tokens;        // [N]
    std::vector<int32_t> types;         // [N] token types: 1 for the second text of a pair
    std::vector<int32_t> targets;       // [N] token or label to predict, -1 = none
    std::vector<float> weights;         // [N] of each in the loss; empty: all 1
    std::vector<int32_t> source;        // [N] of a derived set: the row of `derived_from` that each is; empty: none
    std::vector<std::byte> inputs;      // [N, ...] numbers that a model reads in place of tokens
    std::vector<uint8_t> pixels;        // [N, 3 P P] of patches of images, processed but not normalised
    std::vector<float> soft_targets;    // [N, C] what a teacher says of each
    std::vector<int32_t> real_ends;     // [S] where the padding of each sequence begins; empty: there is none
    int derived_from = -1;              // the set whose rows these are; -1: they are its own

    bool is_derived() const { return derived_from >= 0; }
    int64_t rows() const { return starts.back(); }
    int64_t sequences() const { return static_cast<int64_t>(starts.size()) - 1; }
    int64_t real_rows() const {  // those that are no padding
      int64_t padding = 0;
      for (size_t s = 0; s < real_ends.size(); ++s) padding += starts[s + 1] - real_ends[s];
      return rows() - padding;
    }

    // Ends the sequence that begins where the last one ended: rows up to `end` are its own.
    void end_sequence(size_t end) {
      longest = std::max<int64_t>(longest, static_cast<int64_t>(end) - starts.back());
      starts.push_back(static_cast<int32_t>(end));
    }
    // One more sequence of a set without a source: `rows` rows, with tokens and positions 0, 1, ...
    void add_fixed_rows(int64_t rows, int32_t of_sequence) {
      for (int64_t row = 0; row < rows; ++row) {
        tokens.push_back(static_cast<int32_t>(row));
        position.push_back(static_cast<int32_t>(row));
        sequence.push_back(of_sequence);
      }
      end_sequence(tokens.size());
    }
    // No sequence; the memory stays.
    void clear() {
      for (auto* column : {&position, &sequence, &tokens, &types, &targets, &source, &real_ends}) column->clear();
      for (auto* column : {&weights, &soft_targets}) column->clear();
      inputs.clear();
      pixels.clear();
      starts.assign(1, 0);
      longest = 0;
    }
  };
  std::vector<Set> sets = std::vector<Set>(1);

  // Set `number`, which is made where it is missing.
  Set& derived_set(size_t number, int from) {
    if (sets.size() <= number) sets.resize(number + 1);
    sets[number].derived_from = from;
    return sets[number];
  }
  void clear() {
    for (Set& set : sets) set.clear();
  }

  int64_t sequences() const { return sets.front().sequences(); }
  int64_t rows() const {  // of all sets, those left out whose rows are another's
    int64_t rows = 0;
    for (const Set& set : sets) rows += set.is_derived() ? 0 : set.rows();
    return rows;
  }
  int64_t real_rows() const {  // likewise, without padding
    int64_t rows = 0;
    for (const Set& set : sets) rows += set.is_derived() ? 0 : set.real_rows();
    return rows;
  }
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
  // Where a step is summed in parts (LoaderOptions::share): the micro-batches up to the end of each. Empty: they are one.
  std::vector<int64_t> part_ends;
  int64_t valid_tokens = 0;  // targets >= 0 of the whole step
  double weight_sum = 0;     // of the weights of these; 0: each weighs 1
  int64_t sequences = 0;
  DataCursor cursor;  // of this step
  DataCursor next;    // of the one after it
  bool last_of_epoch = false;

  // Micro-batches of each part.
  struct Part {
    int64_t begin, end;
  };
  std::vector<Part> parts() const {
    std::vector<Part> parts;
    for (int64_t begin = 0; const int64_t end : part_ends) parts.push_back({std::exchange(begin, end), end});
    if (parts.empty()) parts.push_back({0, static_cast<int64_t>(micro_batches.size())});
    return parts;
  }
  // What the sum of losses is divided by.
  double loss_divisor() const { return weight_sum > 0 ? weight_sum : static_cast<double>(valid_tokens); }
};

}  // namespace brisk
