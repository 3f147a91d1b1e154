// Micro-batches written by hand.
//
//   MicroBatch batch;
//   add_sequence(batch.sets[0], {5, 6, 7}, {6, 7, -1});
//   const MicroBatch second = cut(batch, 1);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "data/batch/batch.h"

namespace brisk::testing {

// The next sequence of a row set; its number within the step is its place where none is given.
inline void add_sequence(MicroBatch::Set& set, const std::vector<int32_t>& tokens,
                         const std::vector<int32_t>& targets = {}, std::optional<int32_t> number = {}) {
  set.tokens.insert(set.tokens.end(), tokens.begin(), tokens.end());
  set.targets.insert(set.targets.end(), targets.begin(), targets.end());
  for (size_t i = 0; i < tokens.size(); ++i) set.position.push_back(static_cast<int32_t>(i));
  set.sequence.resize(set.tokens.size(), number.value_or(static_cast<int32_t>(set.sequences())));
  set.end_sequence(set.tokens.size());
}

// One sequence of a batch, with its own number in the step.
inline MicroBatch cut(const MicroBatch& batch, size_t s) {
  MicroBatch one;
  for (size_t i = 0; i < batch.sets.size(); ++i) {
    const MicroBatch::Set& from = batch.sets[i];
    one.sets.resize(i + 1);
    MicroBatch::Set& set = one.sets[i];
    using Set = MicroBatch::Set;
    for (const auto column : {&Set::tokens, &Set::types, &Set::targets, &Set::source, &Set::position, &Set::sequence}) {
      const std::vector<int32_t>& values = from.*column;
      if (!values.empty()) (set.*column).assign(values.begin() + from.starts[s], values.begin() + from.starts[s + 1]);
    }
    set.end_sequence(static_cast<size_t>(from.starts[s + 1] - from.starts[s]));
    set.derived_from = from.derived_from;
    if (!set.is_derived()) continue;
    for (int32_t& row : set.source) row -= batch.sets[static_cast<size_t>(from.derived_from)].starts[s];
  }
  return one;
}

}  // namespace brisk::testing
