// Splits text into the words that BPE works within, exactly as GPT-2's pattern does:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
//   for (size_t begin = 0; begin < text.size();) {
//     const size_t end = word_end(text, begin);   // "I've  2 cats" -> "I" "'ve" " " " 2" " cats"
//     ...
//     begin = end;
//   }
//
// A byte that is no UTF-8 counts as a symbol that is neither letter, number nor space.
#pragma once

#include <cstddef>
#include <string_view>

namespace brisk {

// Where the word that begins at `begin` ends; begin < text.size(), and the result is larger than begin.
size_t word_end(std::string_view text, size_t begin);

// The first place at or after `from` where text can be cut so that its two parts split into the same words as the
// whole does; text.size() if there is none. This is what lets several threads split one text.
size_t cut_between_words(std::string_view text, size_t from);

}  // namespace brisk
