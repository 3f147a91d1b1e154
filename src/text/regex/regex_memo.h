// What a search for a regular expression remembers (regex_search.h), in pages of positions that are made when they are
// first touched and dropped when the search has passed them.
//
//   RegexMemo memo(program, text.size(), most_bytes);
//   if (memo.mark_failed(slot, at)) ...                // it was marked before
//   memo.end(slot, at) = RegexMemo::end_code(at, end);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "text/regex/regex_program.h"

namespace brisk {

class RegexMemo {
 public:
  static constexpr uint32_t kUnknown = 0, kFailed = 1, kFirstEnd = 2;

  // A text that takes more than `most_bytes` to remember is refused.
  RegexMemo(const RegexProgram& program, size_t text_size, size_t most_bytes)
      : outer_slots_(program.outer_slots),
        group_slots_(program.group_slots),
        slack_(4 * program.instructions.size()),
        text_size_(text_size),
        most_bytes_(most_bytes),
        pages_(text_size / kPositions + 1) {}

  [[noreturn]] static void refuse_memory(size_t text_size) {
    user_error(
        "a regular expression of the tokenizer takes too much memory on a text of {} bytes in one piece: divide the text "
        "into shorter documents, or use a tokenizer with a simpler pattern",
        text_size);
  }

  static uint32_t end_code(size_t at, size_t end) { return static_cast<uint32_t>(end - at) + kFirstEnd; }
  static size_t end_of_code(size_t at, uint32_t code) { return at + code - kFirstEnd; }

  // Outside of groups: whether the state has failed before. From now on it has.
  bool mark_failed(uint32_t slot, size_t at) {
    auto& bits = pages_[at / kPositions].failed;
    if (bits.empty()) grow(bits, kPositions * outer_slots_ / 64 + 1);
    const size_t bit = at % kPositions * outer_slots_ + slot;
    const uint64_t mask = uint64_t{1} << bit % 64;
    const bool was_marked = (bits[bit / 64] & mask) != 0;
    bits[bit / 64] |= mask;
    return was_marked;
  }

  // A match ends here: the states it passed here did not fail.
  void clear_failed(size_t at) {
    auto& bits = pages_[at / kPositions].failed;
    if (bits.empty()) return;
    const size_t begin = at % kPositions * outer_slots_;
    for (size_t bit = begin; bit < begin + outer_slots_; ++bit) bits[bit / 64] &= ~(uint64_t{1} << bit % 64);
  }

  // Inside groups: kUnknown, kFailed, or where the group's match ends (end_code).
  uint32_t& end(uint32_t slot, size_t at) {
    auto& ends = pages_[at / kPositions].ends;
    if (ends.empty()) grow(ends, kPositions * group_slots_);
    return ends[at % kPositions * group_slots_ + slot];
  }

  // The search will begin at `at` or behind it; what looks behind may still ask for a few positions before it.
  void forget_before(size_t at) {
    const size_t page = at > slack_ ? (at - slack_) / kPositions : 0;
    for (; forgotten_ < page; ++forgotten_) {
      bytes_ -= pages_[forgotten_].failed.size() * 8 + pages_[forgotten_].ends.size() * 4;
      pages_[forgotten_] = {};
    }
  }

 private:
  static constexpr size_t kPositions = 256;
  struct Page {
    std::vector<uint64_t> failed;
    std::vector<uint32_t> ends;
  };

  template <typename T>
  void grow(std::vector<T>& values, size_t count) {
    bytes_ += count * sizeof(T);
    if (bytes_ > most_bytes_) refuse_memory(text_size_);
    values.resize(count);
  }

  size_t outer_slots_, group_slots_, slack_, text_size_, most_bytes_;
  std::vector<Page> pages_;
  size_t forgotten_ = 0;  // pages before this one are dropped
  size_t bytes_ = 0;
};

}  // namespace brisk
