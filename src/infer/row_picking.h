// Which rows of a micro-batch have targets: all of them, or a second row set that is picked from them.
//
//   RowPicking picking;                                 // a classifier reads the first row of each text
//   picking.picked = [](const RowCapacity& all) { return RowCapacity{all.sequences, all.sequences, 1}; };
//   Tape tape({.rows = picking.row_sets(picking.capacity(4096, 128))});
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "data/batch/packer.h"
#include "tensor/device.h"
#include "tensor/tape.h"

namespace brisk {

struct RowPicking {
  // The second row set of a micro-batch of this capacity, at most; none: all rows have targets, and there is no second.
  std::function<RowCapacity(const RowCapacity&)> picked;
  // Sequences that a micro-batch may have: what a second row set holds of each is memory.
  int64_t most_sequences = std::numeric_limits<int64_t>::max();

  RowCapacity capacity(int64_t rows, int64_t longest) const {
    return {rows, std::min({rows, most_sequences, kMostSequences}), longest};
  }
  RowCapacity second(const RowCapacity& capacity) const { return picked ? picked(capacity) : RowCapacity{}; }
  std::vector<RowCapacity> row_sets(const RowCapacity& capacity) const {
    if (!picked) return {capacity};
    return {capacity, picked(capacity)};
  }
};

// Which rows a classifier reads, of micro-batches whose steps have so many sequences.
RowPicking first_row_picking(int64_t sequences_per_step);

// Rows of a micro-batch unless the job says otherwise, at most (micro_batch_rows). docs/log.md has the speeds of other
// sizes.
constexpr int64_t kMicroBatchTokens = 4096;
constexpr int64_t kGpuMicroBatchTokens = 65536;  // a GPU is idle with less
inline int64_t usual_micro_batch_tokens(const Device* device) {
  return device != nullptr && device->is_cuda() ? kGpuMicroBatchTokens : kMicroBatchTokens;
}

}  // namespace brisk
