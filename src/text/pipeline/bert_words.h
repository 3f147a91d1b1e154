// Splits raw text at borders that BERT's normalizer and pre-tokenizer respect and never look across: ASCII white space,
// and before and after ASCII punctuation. So each piece can be encoded or counted, and cached, by itself.
//
//   for (size_t begin = bert_piece_begin(text, 0); begin < text.size();) {
//     const size_t end = bert_piece_end(text, begin);     // "Don't stop" -> "Don" "'" "t" "stop"
//     ...
//     begin = bert_piece_begin(text, end);
//   }
//
// It holds for BertNormalizer because NFD, unlike NFC, never joins a mark to the character before it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace brisk {

enum class BertClass : uint8_t { kPlain, kOther, kPunctuation, kSpace };  // kPlain: ASCII letters and digits

inline constexpr std::array<BertClass, 256> kBertClasses = [] {
  std::array<BertClass, 256> classes{};
  for (int byte = 0; byte < 256; ++byte) {
    const auto is_in = [&](int first, int last) { return byte >= first && byte <= last; };
    if (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
      classes[byte] = BertClass::kSpace;
    } else if (is_in('0', '9') || is_in('A', 'Z') || is_in('a', 'z')) {
      classes[byte] = BertClass::kPlain;
    } else {
      classes[byte] = is_in('!', '~') ? BertClass::kPunctuation : BertClass::kOther;
    }
  }
  return classes;
}();

inline BertClass bert_class_of(char byte) { return kBertClasses[static_cast<unsigned char>(byte)]; }

// The first byte at or after `from` that is no white space; text.size() if there is none.
inline size_t bert_piece_begin(std::string_view text, size_t from) {
  while (from < text.size() && bert_class_of(text[from]) == BertClass::kSpace) ++from;
  return from;
}

// begin < text.size(); text[begin] is no white space.
inline size_t bert_piece_end(std::string_view text, size_t begin) {
  size_t end = begin + 1;
  if (bert_class_of(text[begin]) == BertClass::kPunctuation) return end;
  while (end < text.size() && bert_class_of(text[end]) <= BertClass::kOther) ++end;
  return end;
}

}  // namespace brisk
