#include "text/words.h"

#include <array>

#include "text/unicode.h"

namespace brisk {

namespace {

constexpr std::array<Category, 128> kAsciiCategories = [] {
  std::array<Category, 128> categories{};
  for (int c = 'a'; c <= 'z'; ++c) categories[c] = Category::kLetter;
  for (int c = 'A'; c <= 'Z'; ++c) categories[c] = Category::kLetter;
  for (int c = '0'; c <= '9'; ++c) categories[c] = Category::kNumber;
  for (int c = '\t'; c <= '\r'; ++c) categories[c] = Category::kSpace;
  categories[' '] = Category::kSpace;
  return categories;
}();

struct Symbol {
  Category category;
  size_t length;
};

inline Symbol symbol_at(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 128) return {kAsciiCategories[byte], 1};
  const CodePoint code_point = decode_utf8(text, at);
  return {category_of(code_point.value), code_point.length};
}

// The category of the symbol that ends just before `at`; at > 0.
Category category_before(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  const Symbol symbol = symbol_at(text, begin);
  return begin + symbol.length == at ? symbol.category : Category::kOther;  // else the last byte is no UTF-8
}

size_t run_end(std::string_view text, size_t at, Category category) {
  while (at < text.size()) {
    const Symbol symbol = symbol_at(text, at);
    if (symbol.category != category) break;
    at += symbol.length;
  }
  return at;
}

// 's 't 're 've 'm 'll 'd: the length of the contraction at the apostrophe text[at], or 0.
size_t contraction_length(std::string_view text, size_t at) {
  if (at + 1 >= text.size()) return 0;
  const char first = text[at + 1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (at + 2 >= text.size()) return 0;
  const char second = text[at + 2];
  const bool matches =
      (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return matches ? 3 : 0;
}

}  // namespace

size_t word_end(std::string_view text, size_t begin) {
  if (text[begin] == '\'') {
    if (const size_t length = contraction_length(text, begin)) return begin + length;
  }
  if (text[begin] == ' ' && begin + 1 < text.size()) {
    const Symbol next = symbol_at(text, begin + 1);
    if (next.category != Category::kSpace) return run_end(text, begin + 1 + next.length, next.category);
  }
  const Symbol first = symbol_at(text, begin);
  if (first.category != Category::kSpace) return run_end(text, begin + first.length, first.category);

  // White space: all of it at the end of the text; before a word all but the last symbol, which is the word's own
  // leading space if it is one and stands alone otherwise.
  size_t last = begin;
  size_t end = begin + first.length;
  while (end < text.size()) {
    const Symbol symbol = symbol_at(text, end);
    if (symbol.category != Category::kSpace) return last == begin ? end : last;
    last = end;
    end += symbol.length;
  }
  return end;
}

size_t cut_between_words(std::string_view text, size_t from) {
  // Before a lone space ("x y" -> "x", " y"), or after a lone newline ("x\ny" -> "x", "\n", "y").
  for (size_t at = from; at + 1 < text.size(); ++at) {
    if (text[at] != ' ' && text[at] != '\n') continue;
    if (at == 0 || category_before(text, at) == Category::kSpace) continue;
    if (symbol_at(text, at + 1).category == Category::kSpace) continue;
    return text[at] == ' ' ? at : at + 1;
  }
  return text.size();
}

}  // namespace brisk
