// Learns the merges of BPE: which two neighbouring symbols are joined first, which next. Distinct words are stored as
// linked lists of symbols, with the count and the positions of every pair of neighbours. A merge touches only the
// positions of its pair, so the cost is proportional to the number of changes, not to the size of the text.
//
//   MergeLearner learner(2);                                  // pairs that occur less often are never joined
//   learner.add_word({'l', 'o', 'w'}, 17);                    // all words before the first merge
//   while (auto merge = learner.learn_next(next_id, rank)) ...
//
// Of two pairs equally frequent, the one with the smaller ids is joined first.
#pragma once

#include <limits>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "base/hash.h"
#include "text/models/merges.h"
#include "text/tokenizer.h"

namespace brisk {

class MergeLearner {
 public:
  explicit MergeLearner(int64_t min_pair_count) : min_pair_count_(min_pair_count) {}

  void add_word(std::span<const TokenId> symbols, int64_t count);

  // The most frequent pair, joined everywhere into `result`; nothing if no pair is frequent enough. `result` is larger
  // than any symbol before it.
  std::optional<Merge> learn_next(TokenId result, uint32_t rank);

 private:
  using Place = uint32_t;  // an index into the symbols
  static constexpr Place kNowhere = std::numeric_limits<Place>::max();
  static constexpr TokenId kGone = -1;

  struct Pair {
    TokenId left, right;
    int64_t count = 0;
    std::vector<Place> places;  // of its left symbol, ascending; some are out of date: a merge took a symbol of it
  };

  // Pair of tokens to its number in a list of Pairs.
  class PairNumbers {
   public:
    uint32_t& operator()(TokenId left, TokenId right) {
      if (2 * (used_ + 1) > slots_.size()) grow();
      Slot& slot = slot_of(static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right));
      if (slot.number == kNone) ++used_;  // the caller gives it a number
      return slot.number;
    }
    static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

   private:
    struct Slot {
      uint64_t key = 0;
      uint32_t number = kNone;
    };

    Slot& slot_of(uint64_t key) {
      const size_t mask = slots_.size() - 1;
      size_t at = hash_mix(key, 0) & mask;
      while (slots_[at].number != kNone && slots_[at].key != key) at = (at + 1) & mask;
      slots_[at].key = key;
      return slots_[at];
    }

    void grow() {
      std::vector<Slot> old(slots_.empty() ? 1 << 16 : 2 * slots_.size());
      old.swap(slots_);
      for (const Slot& slot : old) {
        if (slot.number != kNone) slot_of(slot.key).number = slot.number;
      }
    }

    std::vector<Slot> slots_;
    size_t used_ = 0;
  };

  struct Candidate {
    int64_t count;
    TokenId left, right;
    uint32_t number;
    bool operator<(const Candidate& other) const {  // the top of the queue is the largest
      if (count != other.count) return count < other.count;
      if (left != other.left) return left > other.left;
      return right > other.right;
    }
  };

  void add_pair(Place place, TokenId left, TokenId right, int64_t count);
  void remove_pair(TokenId left, TokenId right, int64_t count) { pairs_[numbers_(left, right)].count -= count; }
  void queue_pair(uint32_t number);
  void join_everywhere(uint32_t number, TokenId result);

  int64_t min_pair_count_;
  std::vector<TokenId> symbols_;
  std::vector<Place> next_, previous_;
  std::vector<uint32_t> word_of_;
  std::vector<int64_t> word_counts_;
  std::vector<Pair> pairs_;
  PairNumbers numbers_;
  std::priority_queue<Candidate> queue_;
  bool is_learning_ = false;
};

}  // namespace brisk
