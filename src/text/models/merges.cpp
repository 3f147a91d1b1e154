#include "text/models/merges.h"

#include <algorithm>
#include <bit>
#include <functional>

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

namespace {

// The symbols of a long word while they are joined. One that was joined of several keeps the places of all of them: its
// id stands in the first, and minus its length in the second and in the last (what is negative between them means
// nothing), so that its neighbours can be found without a list beside it.
class JoinedSymbols {
 public:
  explicit JoinedSymbols(std::span<TokenId> places) : places_(places) {}

  TokenId at(size_t place) const { return places_[place]; }
  size_t after(size_t place) const {
    const bool is_joined = place + 1 < places_.size() && places_[place + 1] < 0;
    return is_joined ? place + static_cast<size_t>(-places_[place + 1]) : place + 1;
  }
  size_t before(size_t place) const {  // place > 0
    return places_[place - 1] < 0 ? place - static_cast<size_t>(-places_[place - 1]) : place - 1;
  }
  bool has_after(size_t place) const { return after(place) < places_.size(); }

  void join_with_next(size_t place, TokenId result) {
    const size_t second = after(place), end = after(second);
    places_[place] = result;
    places_[second] = -1;  // no id stands there any more
    places_[place + 1] = places_[end - 1] = -static_cast<TokenId>(end - place);
  }

  size_t pack() {  // the ids at the front
    return static_cast<size_t>(std::remove_if(places_.begin(), places_.end(), [](TokenId id) { return id < 0; }) -
                               places_.begin());
  }

 private:
  std::span<TokenId> places_;
};

}  // namespace

// 12 bytes for each symbol: its place, and a candidate (8 bytes) for the pair that begins there.
size_t MergeTable::apply_long(std::span<TokenId> symbols) const {
  if (symbols.size() > std::numeric_limits<int32_t>::max()) {
    user_error("a text without a place to divide it is {} characters long; expected at most 2^31: divide it into lines",
               symbols.size());
  }
  JoinedSymbols joined(symbols);
  const auto rank_at = [&](size_t place) {
    return joined.has_after(place) ? find(joined.at(place), joined.at(joined.after(place))) : Found{};
  };
  // Rank and place, so that the lowest rank comes first, and the leftmost place of equals.
  std::vector<uint64_t> queue;
  const auto candidate = [](const Found& found, size_t place) { return uint64_t{found.rank} << 32 | place; };
  const auto place_of = [](uint64_t waiting) { return static_cast<size_t>(waiting & 0xFFFFFFFF); };
  const auto holds = [&](uint64_t waiting) {  // another merge may have taken either symbol since
    const size_t place = place_of(waiting);
    return symbols[place] >= 0 && rank_at(place).rank == waiting >> 32;
  };
  size_t pairs = 0;
  for (size_t i = 0; i + 1 < symbols.size(); ++i) pairs += find(symbols[i], symbols[i + 1]).rank != kNoRank;
  queue.reserve(pairs + pairs / 8);
  for (size_t i = 0; i + 1 < symbols.size(); ++i) {
    if (const Found found = find(symbols[i], symbols[i + 1]); found.rank != kNoRank)
      queue.push_back(candidate(found, i));
  }
  std::ranges::make_heap(queue, std::greater());
  const auto add = [&](size_t place) {
    const Found found = rank_at(place);
    if (found.rank == kNoRank) return;
    if (queue.size() == queue.capacity()) {  // rather than grow, drop those that cannot be applied any more
      std::erase_if(queue, [&](uint64_t waiting) { return !holds(waiting); });
      std::ranges::make_heap(queue, std::greater());
      if (queue.size() > queue.capacity() / 4 * 3) queue.reserve(2 * queue.capacity());
    }
    queue.push_back(candidate(found, place));
    std::ranges::push_heap(queue, std::greater());
  };
  while (!queue.empty()) {
    std::ranges::pop_heap(queue, std::greater());
    const uint64_t best = queue.back();
    queue.pop_back();
    if (!holds(best)) continue;
    const size_t place = place_of(best);
    joined.join_with_next(place, rank_at(place).result);
    add(place);
    if (place > 0) add(joined.before(place));
  }
  return joined.pack();
}

}  // namespace brisk
