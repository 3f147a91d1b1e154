// How often each word occurs in texts, counted on all cores.
//
//   std::vector<WordCount> counts = count_words(texts);     // {" the", 64023}, ... in no particular order
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace brisk {

struct WordCount {
  std::string_view word;  // a view into one of the texts
  int64_t count;
};

// Words of GPT-2's pattern (words.h).
std::vector<WordCount> count_words(std::span<const std::string_view> texts);

// Pieces of text as it was given (bert_words.h), to be normalized afterwards, each once.
std::vector<WordCount> count_bert_pieces(std::span<const std::string_view> texts);

}  // namespace brisk
