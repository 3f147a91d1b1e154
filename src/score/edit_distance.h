// Levenshtein's distance of two sequences of symbols: the fewest insertions, deletions and substitutions that make the one
// of the other. 64 cells of the table at a time (Myers, 1999; blocks after Hyyro, 2003): two pages of 5,000 characters
// take 1.5 ms.
//
//   EditDistance distance;                             // keeps its memory for the next pair
//   distance.between(a, b)                             // of std::vector<uint32_t>: characters, or words as numbers
//
// Memory is linear in the lengths; one object is one thread's.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace brisk {

class EditDistance {
 public:
  int64_t between(std::span<const uint32_t> a, std::span<const uint32_t> b);

 private:
  void number_symbols(std::span<const uint32_t> pattern, std::span<const uint32_t> text);
  void sweep(std::span<const uint32_t> rows);

  std::unordered_map<uint32_t, uint32_t> numbers_;
  std::vector<uint32_t> pattern_, text_;  // as numbers; what only the text has is the last one
  std::vector<uint64_t> equal_;           // by the number: in which rows of the block it is
  std::vector<int8_t> steps_;             // by the column: a cell of the last row less the one before it
};

}  // namespace brisk
