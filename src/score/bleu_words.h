// The words of a line as sacreBLEU's tokenizers cut it, to the byte: what BLEU compares depends on them.
//
//   std::string words;
//   tokenize_for_bleu("Hello, world!", BleuTokenizer::k13a, words);          // "Hello , world !", roughly
//   for_each_word(words, [&](std::string_view word) { ... });               // "Hello" "," "world" "!"
//
// A byte that is not UTF-8 counts as a character that is neither letter, number, punctuation nor space. Punctuation and
// symbols of kIntl are those of Unicode 16; what Unicode assigned later is neither.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/unicode.h"

namespace brisk {

enum class BleuTokenizer : uint8_t {
  k13a,   // mteval-v13a, of WMT: western languages
  kIntl,  // mteval-v14: at all of Unicode's punctuation and symbols
  kZh,    // k13a, and each Chinese character by itself
  kChar,  // each character by itself
  kNone,  // at spaces
};

// "13a", "intl", "zh", "char", "none"; UserError otherwise, which names `option`.
BleuTokenizer bleu_tokenizer_from(std::string_view name, std::string_view option);
const char* name_of(BleuTokenizer tokenizer);

// Writes the line to `words` with white space between its words.
void tokenize_for_bleu(std::string_view line, BleuTokenizer tokenizer, std::string& words);

// What Python's str.split() splits at: white space, and the four separators of ASCII.
inline bool is_python_space(uint32_t code_point) {
  return is_white_space(code_point) || (code_point >= 0x1C && code_point <= 0x1F);
}

template <typename Visit>
void for_each_word(std::string_view text, const Visit& visit) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint character = decode_utf8(text, at);
    if (is_python_space(character.value)) {
      if (begin < at) visit(text.substr(begin, at - begin));
      begin = at + character.length;
    }
    at += character.length;
  }
  if (begin < text.size()) visit(text.substr(begin));
}

}  // namespace brisk
