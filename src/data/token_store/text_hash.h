// A 64-bit hash of a document's text, independent of how the text was cut into parts. It finds duplicates and decides
// which documents are for validation.
//
//   TextHash hash;
//   hash.add("The ca");  hash.add("t sat.");
//   hash.value() == text_hash("The cat sat.");
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/hash.h"

namespace brisk {

class TextHash {
 public:
  void add(std::string_view text) {
    if (text.empty()) return;  // it may have no memory to copy from
    length_ += text.size();
    if (held_ > 0) {
      const size_t count = std::min(text.size(), sizeof(block_) - held_);
      std::memcpy(block_ + held_, text.data(), count);
      held_ += count;
      text.remove_prefix(count);
      if (held_ < sizeof(block_)) return;
      hash_ = hash_mix(hash_, load_short(block_, sizeof(block_)));
      held_ = 0;
    }
    for (; text.size() >= sizeof(block_); text.remove_prefix(sizeof(block_))) {
      hash_ = hash_mix(hash_, load_short(text.data(), sizeof(block_)));
    }
    std::memcpy(block_, text.data(), text.size());
    held_ = text.size();
  }

  uint64_t value() const { return hash_mix(hash_mix(hash_, load_short(block_, held_)), length_); }

 private:
  uint64_t hash_ = 0, length_ = 0;
  char block_[8] = {};
  size_t held_ = 0;
};

inline uint64_t text_hash(std::string_view text) {
  TextHash hash;
  hash.add(text);
  return hash.value();
}

}  // namespace brisk
