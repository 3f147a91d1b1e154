#include "data/corpus/duplicates.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/rounding.h"

namespace brisk {

namespace {

// Open addressing over hashes, at most half full. Grows with what is in it.
class HashSet {
 public:
  bool insert(uint64_t hash) {  // false if it is there
    if (2 * (used_ + 1) > slots_.size()) grow();
    uint64_t& slot = find(hash);
    if (slot == stored(hash)) return false;
    slot = stored(hash);
    ++used_;
    return true;
  }
  bool contains(uint64_t hash) { return !slots_.empty() && find(hash) == stored(hash); }

 private:
  static uint64_t stored(uint64_t hash) { return hash == 0 ? 1 : hash; }  // 0 is an empty slot

  uint64_t& find(uint64_t hash) {
    const size_t mask = slots_.size() - 1;
    size_t at = mix64(stored(hash)) & mask;
    while (slots_[at] != 0 && slots_[at] != stored(hash)) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    std::vector<uint64_t> old(slots_.empty() ? 1024 : 2 * slots_.size());
    old.swap(slots_);
    for (const uint64_t hash : old) {
      if (hash != 0) find(hash) = hash;
    }
  }

  std::vector<uint64_t> slots_;
  size_t used_ = 0;
};

// Shares of the hashes, and how many of them are looked at.
struct Passes {
  int64_t shares, looked_at;

  Passes(int64_t documents, int64_t most_held) {
    constexpr int64_t kMostPasses = 16;
    shares = std::max<int64_t>(1, divide_up(documents, most_held));
    looked_at = shares <= kMostPasses ? shares : 1;
  }
  bool takes(int64_t pass, uint64_t hash) const {
    return shares == 1 || static_cast<int64_t>(mix64(hash ^ 0x7368617265) % static_cast<uint64_t>(shares)) == pass;
  }
  DuplicateCount scaled(int64_t count) const {
    if (looked_at == shares) return {count, false};
    return {static_cast<int64_t>(std::llround(static_cast<double>(count) * static_cast<double>(shares) /
                                              static_cast<double>(looked_at))),
            true};
  }
};

}  // namespace

DuplicateCount count_duplicates(const TokenStream& stream, int64_t most_held) {
  const Passes passes(stream.documents(), most_held);
  int64_t count = 0;
  for (int64_t pass = 0; pass < passes.looked_at; ++pass) {
    HashSet seen;
    for (int64_t document = 0; document < stream.documents(); ++document) {
      const uint64_t hash = stream.document_hash(document);
      if (passes.takes(pass, hash) && !seen.insert(hash)) ++count;
    }
  }
  return passes.scaled(count);
}

DuplicateCount count_shared(const TokenStream& stream, const TokenStream& other, int64_t most_held) {
  // The hashes of the smaller one are held. Where that is `other`, a pass over `stream` counts; where it is `stream`,
  // those of its hashes that `other` has are collected first.
  const bool hold_other = other.documents() <= stream.documents();
  const TokenStream& held = hold_other ? other : stream;
  const Passes passes(held.documents(), most_held);
  int64_t count = 0;
  for (int64_t pass = 0; pass < passes.looked_at; ++pass) {
    HashSet hashes, shared;
    for (int64_t document = 0; document < held.documents(); ++document) {
      const uint64_t hash = held.document_hash(document);
      if (passes.takes(pass, hash)) hashes.insert(hash);
    }
    if (!hold_other) {
      for (int64_t document = 0; document < other.documents(); ++document) {
        const uint64_t hash = other.document_hash(document);
        if (passes.takes(pass, hash) && hashes.contains(hash)) shared.insert(hash);
      }
    }
    HashSet& wanted = hold_other ? hashes : shared;
    for (int64_t document = 0; document < stream.documents(); ++document) {
      const uint64_t hash = stream.document_hash(document);
      if (passes.takes(pass, hash) && wanted.contains(hash)) ++count;
    }
  }
  return passes.scaled(count);
}

}  // namespace brisk
