#include "text/pipeline/words.h"

#include <array>

#include "base/text/unicode.h"

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

struct WordSymbol {
  Category category;
  size_t length;
};

inline WordSymbol symbol_at(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 128) return {kAsciiCategories[byte], 1};
  const CodePoint code_point = decode_utf8(text, at);
  return {category_of(code_point.value), code_point.length};
}

// The category of the symbol that ends just before `at`; at > 0.
Category category_before(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  const WordSymbol symbol = symbol_at(text, begin);
  return begin + symbol.length == at ? symbol.category : Category::kOther;  // else the last byte is not UTF-8
}

size_t run_end(std::string_view text, size_t at, Category category) {
  while (at < text.size()) {
    const WordSymbol symbol = symbol_at(text, at);
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
    const WordSymbol next = symbol_at(text, begin + 1);
    if (next.category != Category::kSpace) return run_end(text, begin + 1 + next.length, next.category);
  }
  const WordSymbol first = symbol_at(text, begin);
  if (first.category != Category::kSpace) return run_end(text, begin + first.length, first.category);

  // White space: all of it at the end of the text; before a word all but the last symbol, which is the word's own
  // leading space if it is one and stands alone otherwise.
  size_t last = begin;
  size_t end = begin + first.length;
  while (end < text.size()) {
    const WordSymbol symbol = symbol_at(text, end);
    if (symbol.category != Category::kSpace) return last == begin ? end : last;
    last = end;
    end += symbol.length;
  }
  return end;
}

namespace {

// 's 't 're 've 'm 'll 'd in upper or lower case at text[at], which is an apostrophe; the letter ſ is an s.
size_t contraction_length_any_case(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at + 1, 2);
  if (rest.empty()) return 0;
  if (rest == "\u017F") return 3;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const char first = lower(rest[0]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (rest.size() < 2) return 0;
  const char second = lower(rest[1]);
  const bool matches =
      (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return matches ? 3 : 0;
}

bool is_newline(char c) { return c == '\n' || c == '\r'; }

// \s*[\r\n]+|\s+(?!\S)|\s+ at white space.
size_t white_space_end(std::string_view text, size_t begin) {
  size_t last = begin, end = begin, after_newline = begin;
  while (end < text.size()) {
    const WordSymbol symbol = symbol_at(text, end);
    if (symbol.category != Category::kSpace) break;
    last = end;
    end += symbol.length;
    if (is_newline(text[last])) after_newline = end;
  }
  if (after_newline > begin) return after_newline;
  if (end == text.size() || last == begin) return end;
  return last;
}

size_t cl100k_word_end(std::string_view text, size_t begin, size_t longest_number) {
  const char first_byte = text[begin];
  if (first_byte == '\'') {
    if (const size_t length = contraction_length_any_case(text, begin)) return begin + length;
  }
  const WordSymbol first = symbol_at(text, begin);
  const size_t after = begin + first.length;
  if (first.category == Category::kLetter) return run_end(text, after, Category::kLetter);
  if (first.category == Category::kNumber) {
    size_t end = after;
    for (size_t count = 1; count < longest_number && end < text.size(); ++count) {
      const WordSymbol symbol = symbol_at(text, end);
      if (symbol.category != Category::kNumber) break;
      end += symbol.length;
    }
    return end;
  }
  // Anything but a newline may stand before the letters of a word.
  if (after < text.size() && !is_newline(first_byte)) {
    const WordSymbol second = symbol_at(text, after);
    if (second.category == Category::kLetter) return run_end(text, after + second.length, Category::kLetter);
  }
  size_t symbols = begin;
  if (first_byte == ' ' && after < text.size() && symbol_at(text, after).category == Category::kOther) symbols = after;
  if (symbols == after || first.category == Category::kOther) {
    size_t end = run_end(text, symbols, Category::kOther);
    while (end < text.size() && is_newline(text[end])) ++end;
    return end;
  }
  return white_space_end(text, begin);
}

}  // namespace

size_t word_end(std::string_view text, size_t begin, WordPattern pattern) {
  switch (pattern) {
    case WordPattern::kGpt2: return word_end(text, begin);
    case WordPattern::kCl100k: return cl100k_word_end(text, begin, 3);
    case WordPattern::kQwen2: return cl100k_word_end(text, begin, 1);
  }
  return text.size();
}

std::optional<WordPattern> known_word_pattern(std::string_view regex) {
  struct Known {
    std::string_view regex;
    WordPattern pattern;
  };
  static constexpr Known kKnown[] = {
      {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", WordPattern::kGpt2},
      {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", WordPattern::kGpt2},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
       R"(\s*[\r\n]+|\s+(?!\S)|\s+)",
       WordPattern::kCl100k},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
       R"(\s*[\r\n]+|\s+(?!\S)|\s+)",
       WordPattern::kQwen2},
  };
  for (const Known& known : kKnown) {
    if (regex == known.regex) return known.pattern;
  }
  return std::nullopt;
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
