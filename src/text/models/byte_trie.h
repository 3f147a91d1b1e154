// A trie of byte strings, each with an id, walked one byte at a time from any node.
//
//   ByteTrie trie;
//   trie.insert("##ing", 13);
//   uint32_t node = trie.child(ByteTrie::kRoot, '#');     // kNone if no string continues with that byte
//   trie.id_at(node)                                      // -1 if no string ends here
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace brisk {

class ByteTrie {
 public:
  static constexpr uint32_t kRoot = 0, kNone = 0;  // no node has the root for a child

  void insert(std::string_view bytes, TokenId id);

  uint32_t child(uint32_t node, char byte) const {
    if (slots_.empty()) return kNone;
    const uint32_t key = key_of(node, byte);
    for (uint32_t at = place_of(key);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key || slot.node == kNone) return slot.node;
    }
  }

  TokenId id_at(uint32_t node) const { return ids_[node]; }

  // The node of `bytes`; nothing if no string begins so.
  std::optional<uint32_t> find(std::string_view bytes) const;

 private:
  // An edge: from the node and by the byte of `key` to `node`.
  struct Slot {
    uint32_t key = 0, node = kNone;
  };
  static uint32_t key_of(uint32_t node, char byte) { return node << 8 | static_cast<unsigned char>(byte); }
  uint32_t place_of(uint32_t key) const { return (key * 2654435769u) >> shift_; }
  void add_edge(uint32_t key, uint32_t node);

  std::vector<Slot> slots_;  // open addressing, at most half full
  uint32_t mask_ = 0;
  int shift_ = 0;
  std::vector<TokenId> ids_ = {-1};  // by node
};

}  // namespace brisk
