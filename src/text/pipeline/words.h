// Splits text into the words that BPE works within, exactly as one of the usual patterns does:
//
//   GPT-2       's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   cl100k      (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
//   (Llama 3)   \s*[\r\n]+|\s+(?!\S)|\s+
//   Qwen 2      the same with \p{N} for \p{N}{1,3}
//
//   for (size_t begin = 0; begin < text.size();) {
//     const size_t end = word_end(text, begin);   // "I've  2 cats" -> "I" "'ve" " " " 2" " cats"
//     ...
//     begin = end;
//   }
//
// A byte that is not UTF-8 counts as a symbol that is neither letter, number nor space.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace brisk {

enum class WordPattern { kGpt2, kCl100k, kQwen2 };

// The one of these patterns that is written so in a tokenizer file.
std::optional<WordPattern> known_word_pattern(std::string_view regex);

// Where the word that begins at `begin` ends; begin < text.size(), and the result is larger than begin.
size_t word_end(std::string_view text, size_t begin);  // GPT-2's
size_t word_end(std::string_view text, size_t begin, WordPattern pattern);

// The first place at or after `from` where text can be cut so that its two parts split into the same words of GPT-2 as
// the whole does; text.size() if there is none. This is what lets several threads split one text.
size_t cut_between_words(std::string_view text, size_t from);

}  // namespace brisk
