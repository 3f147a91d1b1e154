#include "infer/batch_layout.h"

namespace brisk {

RowCapacity BatchLayout::capacity(int64_t rows, int64_t longest) const {
  return {rows, std::min({rows, most_sequences, kMostSequences}), longest};
}

std::vector<RowCapacity> BatchLayout::capacities(const RowCapacity& first) const {
  std::vector<RowCapacity> all = {first};
  for (const Set& set : others) all.push_back(set.capacity(first));
  return all;
}

RowLimits BatchLayout::row_limits(const RowCapacity& first) const {
  RowLimits limits = {first.rows};
  for (const Set& set : others) {
    if (set.derived_from < 0) limits.push_back(set.capacity(first).rows);
  }
  return limits;
}

BatchLayout first_rows_layout(int64_t sequences_per_step) {
  // An evaluation packs as many short texts as fit: 512 rows after the last layer are a few MiB.
  constexpr int64_t kUsual = 512;
  BatchLayout layout;
  layout.most_sequences = std::max(kUsual, sequences_per_step);
  layout.others = {{[](const RowCapacity& tokens) { return RowCapacity{tokens.sequences, tokens.sequences, 1}; }, 0}};
  return layout;
}

}  // namespace brisk
