#include "infer/forward/batch_layout.h"

#include "base/error.h"

namespace brisk {

RowCapacity BatchLayout::capacity(int64_t rows, int64_t longest) const {
  const int64_t sequences = std::max<int64_t>(1, rows / rows_of_sequence);
  return {rows, std::min({sequences, most_sequences, kMostSequences}), longest};
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

int64_t BatchLayout::least_rows(std::span<const int64_t> longest) const {
  const auto short_set = [&](int64_t rows) -> size_t {  // the first one that is too small; 0: none
    const RowLimits limits = row_limits(capacity(rows, longest[0]));
    for (size_t set = 1; set < std::min(limits.size(), longest.size()); ++set) {
      if (limits[set] < longest[set]) return set;
    }
    return 0;
  };
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t least = std::max<int64_t>(1, longest[0]), enough = least;
  for (; short_set(enough) > 0; enough *= 2) {
    if (enough < kMost) continue;
    const size_t set = short_set(enough);
    user_error("a sequence has {} rows in row set {}, and no micro-batch holds more than {} there: shorten it",
               longest[set], set, row_limits(capacity(enough, longest[0]))[set]);
  }
  while (least < enough) {
    const int64_t middle = least + (enough - least) / 2;
    if (short_set(middle) > 0) {
      least = middle + 1;
    } else {
      enough = middle;
    }
  }
  return enough;
}

std::vector<int64_t> longest_of_sets(const Sequences& sequences) {
  std::vector<int64_t> longest;
  for (int set = 0; set < sequences.sets(); ++set) longest.push_back(sequences.longest(set));
  return longest;
}

std::vector<RowMeans> row_means(const Sequences& sequences, const BatchLayout& layout) {
  std::vector<RowMeans> means;
  for (size_t set = 0; set <= layout.others.size(); ++set) {
    const LengthTotals totals = sequences.totals(static_cast<int>(set));
    means.push_back({.rows = static_cast<double>(totals.rows) / static_cast<double>(sequences.count()),
                     .attended = totals.squares / static_cast<double>(totals.rows),
                     .derived = set > 0 && layout.others[set - 1].derived_from >= 0});
  }
  return means;
}

BatchLayout::Set fixed_rows_set(int64_t rows) {
  return {[rows](const RowCapacity& first) { return RowCapacity{first.sequences * rows, first.sequences, rows}; }, 0};
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
