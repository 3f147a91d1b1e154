#include "text/models/merges.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "base/error.h"

namespace brisk {

MergeTable::MergeTable(std::span<const Merge> merges) {
  const uint64_t capacity = std::bit_ceil(std::max<uint64_t>(16, 2 * merges.size()));
  slots_.assign(capacity, Slot{kEmpty, {}});
  mask_ = capacity - 1;
  shift_ = 64 - std::countr_zero(capacity);
  for (const Merge& merge : merges) {
    const uint64_t key = key_of(merge.left, merge.right);
    uint64_t at = hash_mix(key, 0) >> shift_;
    while (slots_[at].key != kEmpty) {
      BRISK_CHECK(slots_[at].key != key, "tokens {} and {} are merged twice", merge.left, merge.right);
      at = (at + 1) & mask_;
    }
    slots_[at] = {key, {merge.rank, merge.result}};
  }
}

size_t MergeTable::apply_short(std::span<TokenId> symbols) const {
  size_t n = symbols.size();
  Found pairs[kShort];  // pairs[i] joins symbols i and i + 1
  for (size_t i = 0; i + 1 < n; ++i) pairs[i] = find(symbols[i], symbols[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNoRank) break;
    symbols[best] = pairs[best].result;
    std::copy(symbols.begin() + best + 2, symbols.begin() + n, symbols.begin() + best + 1);
    std::copy(pairs + best + 1, pairs + n - 1, pairs + best);
    --n;
    if (best + 1 < n) pairs[best] = find(symbols[best], symbols[best + 1]);
    if (best > 0) pairs[best - 1] = find(symbols[best - 1], symbols[best]);
  }
  return n;
}

size_t MergeTable::apply_long(std::span<TokenId> symbols) const {
  constexpr TokenId kGone = -1;
  const auto n = static_cast<int64_t>(symbols.size());
  std::vector<int64_t> next(n), previous(n);  // of the symbols still there; n and -1 at the ends
  for (int64_t i = 0; i < n; ++i) next[i] = i + 1, previous[i] = i - 1;

  struct Candidate {
    uint32_t rank;
    TokenId left, right, result;
    int64_t place;
    bool operator<(const Candidate& other) const {  // the top of the queue is the largest: lowest rank, leftmost
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };
  std::vector<Candidate> candidates;
  const auto candidate_at = [&](int64_t place, const auto& accept) {
    const TokenId left = symbols[place], right = symbols[next[place]];
    const Found found = find(left, right);
    if (found.rank != kNoRank) accept(Candidate{found.rank, left, right, found.result, place});
  };
  for (int64_t i = 0; i + 1 < n; ++i) candidate_at(i, [&](const Candidate& c) { candidates.push_back(c); });
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(candidates));
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const int64_t second = next[best.place];
    // Another merge may have taken either symbol since this candidate was queued.
    if (symbols[best.place] != best.left || second == n || symbols[second] != best.right) continue;
    symbols[best.place] = best.result;
    symbols[second] = kGone;
    next[best.place] = next[second];
    if (next[second] != n) previous[next[second]] = best.place;
    if (next[best.place] != n) candidate_at(best.place, [&](const Candidate& c) { queue.push(c); });
    if (previous[best.place] != -1) candidate_at(previous[best.place], [&](const Candidate& c) { queue.push(c); });
  }
  return static_cast<size_t>(std::remove(symbols.begin(), symbols.end(), kGone) - symbols.begin());
}

}  // namespace brisk
