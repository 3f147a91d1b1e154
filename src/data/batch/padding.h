// Padding, to measure what it costs: nothing in brisk needs it. Rows that are computed and mean nothing follow the rows of
// each sequence.
//
//   MicroBatch batch = pack(sequences, step, members);
//   pad(batch, {.to = Padding::To::longest});      // each sequence has batch.sets[0].longest rows now
//
// Padding has no targets, is in no derived set, and comes after the positions of its sequence: what the real rows draw
// and compute is the same. A causal row sees only rows before it; where rows see all of their sequence, attention reads
// keys up to Set::real_ends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/batch/batch.h"

namespace brisk {

struct Padding {
  enum class To : uint8_t { none, longest, lengths };  // longest: of the micro-batch
  To to = To::none;
  std::vector<int64_t> lengths = {};  // of To::lengths, per set with rows of its own; no sequence is longer

  bool any() const { return to != To::none; }
};

// Every sequence of such a set as long as `padding` says.
void pad(MicroBatch& batch, const Padding& padding);

// Rows that sequences of these lengths, in row set `set` of a micro-batch, have with their padding.
int64_t padded_rows(std::span<const int64_t> lengths, size_t set, const Padding& padding);

}  // namespace brisk
