// What the micro-batches of a task look like: how many row sets they have, how large each may be, and which of them is
// derived from which. The default is one set, all of whose rows have targets.
//
//   BatchLayout layout = first_rows_layout(32);   // a classifier: its texts, and the first row of each
//   Tape tape({.rows = layout.capacities(layout.capacity(4096, 128))});
//
//   BatchLayout pairs;                            // an encoder-decoder: as many rows of the target, 64 in a sequence
//   pairs.others = {{[](const RowCapacity& source) { return RowCapacity{source.rows, source.sequences, 64}; }}};
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "data/batch/packer.h"
#include "tensor/device.h"
#include "tensor/rows.h"
#include "tensor/tape.h"

namespace brisk {

struct BatchLayout {
  struct Set {
    std::function<RowCapacity(const RowCapacity& first)> capacity;  // at most, with a first set of this capacity
    int derived_from = -1;                                          // the set whose rows these are; -1: their own
  };
  std::vector<Set> others;  // besides the first; those with rows of their own before those without
  // Sequences that a micro-batch may have: what a derived row set holds of each is memory.
  int64_t most_sequences = std::numeric_limits<int64_t>::max();
  int64_t rows_of_sequence = 1;  // of the first set, at least: those of an image

  RowCapacity capacity(int64_t rows, int64_t longest) const;  // of the first set
  std::vector<RowCapacity> capacities(const RowCapacity& first) const;
  RowLimits row_limits(const RowCapacity& first) const;  // what a packer keeps to
  // Rows of the first set with which every set with rows of its own holds its longest sequence; `longest`: of each of
  // these sets. UserError where no number is enough.
  int64_t least_rows(std::span<const int64_t> longest) const;
};

// Of each set with rows of its own.
std::vector<int64_t> longest_of_sets(const Sequences& sequences);

// What each row set of these sequences' micro-batches is like (models/model_costs.h).
std::vector<RowMeans> row_means(const Sequences& sequences, const BatchLayout& layout);

// A set that has `rows` rows of each sequence, whatever is in it (MicroBatch::Set::add_fixed_rows).
BatchLayout::Set fixed_rows_set(int64_t rows);

// Of a classifier, which reads the first row of each text; of micro-batches whose steps have so many sequences.
BatchLayout first_rows_layout(int64_t sequences_per_step);

// Rows of a micro-batch unless the job says otherwise, at most (micro_batch_rows). docs/log.md has the speeds of other
// sizes.
constexpr int64_t kMicroBatchTokens = 4096;
constexpr int64_t kGpuMicroBatchTokens = 65536;  // a GPU is idle with less
inline int64_t usual_micro_batch_tokens(const Device* device) {
  return device != nullptr && device->is_cuda() ? kGpuMicroBatchTokens : kMicroBatchTokens;
}

}  // namespace brisk
