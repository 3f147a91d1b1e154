// Counts duplicate documents by the hashes of their texts, in bounded memory.
//
//   DuplicateCount copies = count_duplicates(*stream);        // of "a", "b", "a", "a": 2
//   DuplicateCount shared = count_shared(*validation, *train) // documents of validation that are also in training
//
// At most `most_held` hashes are in memory at a time (16 to 32 bytes each). More documents than that are counted in
// several sweeps, each over one share of the hash values; more than 16 times that are estimated from one share. All
// copies of a text have the same hash, so they are in the sample together and the count scales.
#pragma once

#include <cstdint>

#include "data/token_store/token_stream.h"

namespace brisk {

struct DuplicateCount {
  int64_t documents = 0;
  bool estimated = false;
};

inline constexpr int64_t kMostHashesHeld = int64_t{1} << 20;

// Documents whose text occurred before.
DuplicateCount count_duplicates(const TokenStream& stream, int64_t most_held = kMostHashesHeld);

// Documents of `stream` whose text is in `other`.
DuplicateCount count_shared(const TokenStream& stream, const TokenStream& other, int64_t most_held = kMostHashesHeld);

}  // namespace brisk
