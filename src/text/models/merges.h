// Applies the merges of a BPE vocabulary to a word.
//
//   MergeTable table(merges);                             // merges[i] joins two tokens into one; lower ranks go first
//   size_t n = table.apply({'l', 'o', 'w'});              // in place: joins until no merge applies
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/hash.h"
#include "text/tokenizer.h"

namespace brisk {

struct Merge {
  TokenId left, right, result;
  uint32_t rank;  // of the merges that apply, the lowest rank goes first; among equals, the leftmost place
};

class MergeTable {
 public:
  struct Found {
    uint32_t rank = kNoRank;
    TokenId result = -1;
  };
  static constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();

  MergeTable() : MergeTable(std::span<const Merge>{}) {}
  explicit MergeTable(std::span<const Merge> merges);

  // What joins `left` and `right`; rank kNoRank if nothing does.
  Found find(TokenId left, TokenId right) const {
    const uint64_t key = key_of(left, right);
    for (uint64_t at = hash_mix(key, 0) >> shift_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.found;
      if (slot.key == kEmpty) return {};
    }
  }

  // Applies the merges to `symbols` in place and returns how many remain, at the front of it.
  size_t apply(std::span<TokenId> symbols) const {
    return symbols.size() <= kShort ? apply_short(symbols) : apply_long(symbols);
  }

 private:
  struct Slot {
    uint64_t key;
    Found found;
  };
  static constexpr uint64_t kEmpty = std::numeric_limits<uint64_t>::max();  // no pair of ids >= 0
  // Up to here looking at every pair for each merge is faster than a heap.
  static constexpr size_t kShort = 48;

  static uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  size_t apply_short(std::span<TokenId> symbols) const;
  size_t apply_long(std::span<TokenId> symbols) const;

  std::vector<Slot> slots_;  // open addressing, at most half full
  uint64_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace brisk
