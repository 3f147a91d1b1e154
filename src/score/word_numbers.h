// Numbers for the words of a hypothesis and its references: equal words have the same number, and one of a reference that the
// hypothesis does not have is kOther.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace brisk {

class WordNumbers {
 public:
  static constexpr uint32_t kOther = 0xFFFFFFFF;

  void clear() { numbers_.clear(); }
  // The word has to stay where it is until clear().
  uint32_t add(std::string_view word) {
    return numbers_.try_emplace(word, static_cast<uint32_t>(numbers_.size())).first->second;
  }
  uint32_t find(std::string_view word) const {
    const auto found = numbers_.find(word);
    return found == numbers_.end() ? kOther : found->second;
  }

 private:
  std::unordered_map<std::string_view, uint32_t> numbers_;
};

}  // namespace brisk
