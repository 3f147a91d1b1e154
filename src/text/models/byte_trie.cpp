#include "text/models/byte_trie.h"

#include "base/error.h"

namespace brisk {

void ByteTrie::insert(std::string_view bytes, TokenId id) {
  uint32_t node = kRoot;
  for (const char byte : bytes) {
    uint32_t next = child(node, byte);
    if (next == kNone) {
      next = static_cast<uint32_t>(ids_.size());
      constexpr uint32_t kMostNodes = 1 << 24;  // a key has 8 bits more
      if (next >= kMostNodes) user_error("a vocabulary of more than {} bytes; expected less: use another", kMostNodes);
      ids_.push_back(-1);
      add_edge(key_of(node, byte), next);
    }
    node = next;
  }
  ids_[node] = id;
}

void ByteTrie::add_edge(uint32_t key, uint32_t node) {
  const auto put = [&](Slot slot) {
    uint32_t at = place_of(slot.key);
    while (slots_[at].node != kNone) at = (at + 1) & mask_;
    slots_[at] = slot;
  };
  if (2 * ids_.size() > slots_.size()) {
    std::vector<Slot> old(slots_.empty() ? 1024 : 2 * slots_.size());
    old.swap(slots_);
    mask_ = static_cast<uint32_t>(slots_.size()) - 1;
    shift_ = 32 - __builtin_ctz(static_cast<uint32_t>(slots_.size()));
    for (const Slot& slot : old) {
      if (slot.node != kNone) put(slot);
    }
  }
  put({key, node});
}

std::optional<uint32_t> ByteTrie::find(std::string_view bytes) const {
  uint32_t node = kRoot;
  for (const char byte : bytes) {
    node = child(node, byte);
    if (node == kNone) return std::nullopt;
  }
  return node;
}

}  // namespace brisk
