// How often each word occurs in texts, counted on all cores.
//
//   std::vector<WordCount> counts = count_words(texts);     // {" the", 64023}, ... in no particular order
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text/unicode.h"
#include "text/pipeline/pipeline_tokenizer.h"

namespace brisk {

struct WordCount {
  std::string_view word;  // a view into one of the texts
  int64_t count;
};

// Words of GPT-2's pattern (words.h).
std::vector<WordCount> count_words(std::span<const std::string_view> texts);

// Pieces of text as it was given (bert_words.h), to be normalized afterwards, each once.
std::vector<WordCount> count_bert_pieces(std::span<const std::string_view> texts);

// What lies between spaces and line ends, for a pre-tokenizer that never looks across them.
std::vector<WordCount> count_spaced_pieces(std::span<const std::string_view> texts);

// The pieces that the normalizer and the pre-tokenizer make of what was counted, on all cores. What is the same text
// before them is so after them.
using PieceCounts = std::unordered_map<std::string, int64_t>;
PieceCounts count_pieces(std::span<const WordCount> given, const TokenizerComponents& components);

// visit(character, is_first), without bytes that are no character.
template <typename Visit>
void for_each_character(std::string_view word, const Visit& visit) {
  for (size_t at = 0; at < word.size();) {
    const CodePoint character = decode_utf8(word, at);
    if (character.value != kInvalidCodePoint) visit(character.value, at == 0);
    at += character.length;
  }
}

}  // namespace brisk
