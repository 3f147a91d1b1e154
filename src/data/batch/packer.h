// Sequences to ragged micro-batches.
//
//   std::vector<MicroBatch> parts = pack_step(sequences, numbers, epoch, {4096});   // one optimizer step
//
//   EvaluationPacker packer(sequences, {.rows = {4096}});                           // all, one at a time
//   MicroBatch batch;
//   while (packer.next(batch)) ...
//
// A sequence is never split, and `sequence` numbers it within the step however the step is divided.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "data/batch/batch.h"
#include "data/batch/padding.h"
#include "data/batch/sequences.h"

namespace brisk {

// Of a micro-batch, at most: a GPU's attention numbers its blocks by sequence, in a dimension that ends at 65,535.
constexpr int64_t kMostSequences = 65534;

// Rows that a micro-batch may have in each set with rows of its own (Sequences::sets): it is full when one set is.
using RowLimits = std::vector<int64_t>;

// Of the sequences of a step: a length per such set and sequence.
using StepLengths = std::vector<std::vector<int64_t>>;
StepLengths lengths_of(const Sequences& sequences, std::span<const int64_t> step);

// Which of the sequences of these lengths, by number, go into each micro-batch: as few as fit (within `limits`, and no
// more than kMostSequences sequences each), as evenly full as can be, ascending within each. No sequence may exceed a
// limit. Padding counts as rows; to the longest of a micro-batch, sequences are taken in their order, as those who pad do.
std::vector<std::vector<int32_t>> divide_step(const StepLengths& lengths, const RowLimits& limits,
                                              const Padding& padding = {});
// Of one micro-batch, in all sets, with padding.
int64_t rows_of(const StepLengths& lengths, std::span<const int32_t> members, const Padding& padding);

// Of a step that consists of the sequences `step`, those at the places `members`; `sequence` is the place.
MicroBatch pack(const Sequences& sequences, std::span<const int64_t> step, std::span<const int32_t> members,
                int64_t epoch = 0);

std::vector<MicroBatch> pack_step(const Sequences& sequences, std::span<const int64_t> step, int64_t epoch,
                                  const RowLimits& limits, const Padding& padding = {});

// The places of a step's sequences in so many parts, which have about as many rows each: the longest first, each to the part
// that has the fewest. Follows from the lengths alone. Of fewer sequences than parts, some parts are empty.
std::vector<std::vector<int32_t>> divide_into_parts(const StepLengths& lengths, int64_t parts);

// Micro-batches of those at `places` alone.
std::vector<MicroBatch> pack_part(const Sequences& sequences, std::span<const int64_t> step,
                                  std::span<const int32_t> places, int64_t epoch, const RowLimits& limits,
                                  const Padding& padding = {});

// Sequences in their order, each micro-batch filled as far as the next whole sequence allows.
class EvaluationPacker {
 public:
  struct Limits {
    RowLimits rows;                                           // of a micro-batch
    int64_t sequences = std::numeric_limits<int64_t>::max();  // of a micro-batch
    int64_t count = std::numeric_limits<int64_t>::max();      // the first so many sequences; all where there are fewer
  };
  EvaluationPacker(const Sequences& sequences, const Limits& limits);
  // False at the end; `batch` is overwritten, its memory reused. `sequence` is the number among all.
  bool next(MicroBatch& batch);

 private:
  bool fits(const MicroBatch& batch) const;  // the next sequence, besides what is there
  void prefetch();

  const Sequences& sequences_;
  Limits limits_;
  int64_t at_ = 0, prefetched_ = 0;
};

}  // namespace brisk
