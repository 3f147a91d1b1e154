#include "score/bleu_words.h"

#include <array>
#include <vector>

#include "base/error.h"

namespace brisk {

namespace {

constexpr std::pair<BleuTokenizer, const char*> kTokenizers[] = {{BleuTokenizer::k13a, "13a"},
                                                                 {BleuTokenizer::kIntl, "intl"},
                                                                 {BleuTokenizer::kZh, "zh"},
                                                                 {BleuTokenizer::kChar, "char"},
                                                                 {BleuTokenizer::kNone, "none"}};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string out;
  size_t done = 0;
  for (; at != std::string::npos; at = text.find(from, done)) {
    out.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  text = out.append(text, done);
}

std::string_view without_spaces_behind(std::string_view text) {
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80 && text.size() - last < 4) --last;
    const CodePoint character = decode_utf8(text, last);
    if (character.length != text.size() - last || !is_python_space(character.value)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string_view without_spaces_before(std::string_view text) {
  while (!text.empty()) {
    const CodePoint character = decode_utf8(text, 0);
    if (!is_python_space(character.value)) break;
    text.remove_prefix(character.length);
  }
  return text;
}

// ASCII punctuation, period, comma, dash and apostrophe left out.
constexpr std::array<bool, 256> kAlwaysApart = [] {
  std::array<bool, 256> apart{};
  constexpr std::pair<char, char> kRanges[] = {{'{', '~'}, {'[', '`'}, {' ', '&'}, {'(', '+'}, {':', '@'}, {'/', '/'}};
  for (const auto& [first, last] : kRanges) {
    for (char c = first; c <= last; ++c) apart[static_cast<unsigned char>(c)] = true;
  }
  return apart;
}();

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

// Puts spaces between the two bytes of each match of `pattern(first, second)`, from left to right, a match not
// overlapping the one before it. `before`, `after`: also before the two, and after them. Characters of several bytes
// are as good as their first or last byte: what the patterns look for is ASCII.
template <typename Pattern>
std::string space_pairs(std::string_view text, bool before, bool after, const Pattern& pattern) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (size_t at = 0; at < text.size();) {
    if (at + 1 == text.size() || !pattern(text[at], text[at + 1])) {
      out += text[at++];
      continue;
    }
    if (before) out += ' ';
    out += text[at];
    out += ' ';
    out += text[at + 1];
    if (after) out += ' ';
    at += 2;
  }
  return out;
}

std::string western_words(std::string_view line) {
  std::string text;
  text.reserve(line.size() + line.size() / 4);
  for (const char c : line) {
    if (kAlwaysApart[static_cast<unsigned char>(c)]) {
      (text += ' ') += c;
      text += ' ';
    } else {
      text += c;
    }
  }
  text = space_pairs(text, false, true, [](char a, char b) { return !is_digit(a) && is_point(b); });
  text = space_pairs(text, true, false, [](char a, char b) { return is_point(a) && !is_digit(b); });
  return space_pairs(text, false, true, [](char a, char b) { return is_digit(a) && b == '-'; });
}

std::string words_of_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  for (char& c : text) c = c == '\n' ? ' ' : c;
  if (text.find('&') != std::string::npos) {
    replace_all(text, "&quot;", "\"");
    replace_all(text, "&amp;", "&");
    replace_all(text, "&lt;", "<");
    replace_all(text, "&gt;", ">");
  }
  return western_words(" " + text + " ");
}

// As sacreBLEU has them. Two of its ranges are meant for characters beyond U+FFFF, but are written with four digits, so that
// they take in U+2001 to U+2A6D and U+2F81 to U+2FA1 (and with them the general punctuation) instead.
bool is_chinese_for_bleu(uint32_t c) {
  struct Range {
    uint32_t first, last;
  };
  constexpr Range kRanges[] = {{0x3400, 0x4DB5}, {0x4E00, 0x9FA5}, {0x9FA6, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A},
                               {0xFA70, 0xFAD9}, {0x2001, 0x2A6D}, {0x2F81, 0x2FA1}, {0xFF00, 0xFFEF}, {0x2E80, 0x2EFF},
                               {0x3000, 0x303F}, {0x31C0, 0x31EF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x2FFF}, {0x3100, 0x312F},
                               {0x31A0, 0x31BF}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0x2600, 0x26FF}, {0x2700, 0x27BF},
                               {0x3200, 0x32FF}, {0x3300, 0x33FF}};
  if (c < 0x2000) return false;
  for (const Range& range : kRanges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

std::string words_of_zh(std::string_view line) {
  std::string text;
  line = without_spaces_before(line);
  for (size_t at = 0; at < line.size();) {
    const CodePoint character = decode_utf8(line, at);
    const std::string_view bytes = line.substr(at, character.length);
    if (is_chinese_for_bleu(character.value)) {
      text.append(" ").append(bytes).append(" ");
    } else {
      text += bytes;
    }
    at += character.length;
  }
  return western_words(text);
}

constexpr CategorySet kPunctuation =
    category_set(GeneralCategory::Pc, GeneralCategory::Pd, GeneralCategory::Pe, GeneralCategory::Pf,
                 GeneralCategory::Pi, GeneralCategory::Po, GeneralCategory::Ps);
constexpr CategorySet kSymbols =
    category_set(GeneralCategory::Sc, GeneralCategory::Sk, GeneralCategory::Sm, GeneralCategory::So);

// A character, and what the three patterns of mteval-v14 ask of it.
struct Character {
  std::string_view bytes;
  bool is_punctuation, is_number;
};

// As space_pairs(), of characters.
template <typename Pattern>
std::vector<Character> space_character_pairs(const std::vector<Character>& text, bool before, const Pattern& pattern) {
  constexpr Character kSpace = {" ", false, false};
  std::vector<Character> out;
  out.reserve(text.size() + text.size() / 4);
  for (size_t at = 0; at < text.size();) {
    if (at + 1 == text.size() || !pattern(text[at], text[at + 1])) {
      out.push_back(text[at++]);
      continue;
    }
    if (before) out.push_back(kSpace);
    out.push_back(text[at]);
    out.push_back(kSpace);
    out.push_back(text[at + 1]);
    if (!before) out.push_back(kSpace);
    at += 2;
  }
  return out;
}

std::string words_of_intl(std::string_view line) {
  std::vector<Character> text;
  for (size_t at = 0; at < line.size();) {
    const CodePoint character = decode_utf8(line, at);
    text.push_back(
        {line.substr(at, character.length), is_in(character.value, kPunctuation), is_in(character.value, kNumbers)});
    at += character.length;
  }
  text = space_character_pairs(text, false,
                               [](const Character& a, const Character& b) { return !a.is_number && b.is_punctuation; });
  text = space_character_pairs(text, true,
                               [](const Character& a, const Character& b) { return a.is_punctuation && !b.is_number; });
  std::string words;
  for (const Character& character : text) {
    const bool is_symbol = is_in(decode_utf8(character.bytes, 0).value, kSymbols);
    if (is_symbol) words += ' ';
    words += character.bytes;
    if (is_symbol) words += ' ';
  }
  return words;
}

std::string words_of_char(std::string_view line) {
  std::string words;
  words.reserve(2 * line.size());
  for (size_t at = 0; at < line.size();) {
    const size_t size = decode_utf8(line, at).length;
    words.append(line, at, size) += ' ';
    at += size;
  }
  return words;
}

}  // namespace

BleuTokenizer bleu_tokenizer_from(std::string_view name, std::string_view option) {
  for (const auto& [tokenizer, known] : kTokenizers) {
    if (name == known) return tokenizer;
  }
  user_error("{}: found \"{}\", expected 13a, intl, zh, char or none", option, name);
}

const char* name_of(BleuTokenizer tokenizer) {
  for (const auto& [known, name] : kTokenizers) {
    if (tokenizer == known) return name;
  }
  BRISK_CHECK(false, "a tokenizer without a name");
}

void tokenize_for_bleu(std::string_view line, BleuTokenizer tokenizer, std::string& words) {
  line = without_spaces_behind(line);
  switch (tokenizer) {
    case BleuTokenizer::k13a: words = words_of_13a(line); return;
    case BleuTokenizer::kIntl: words = words_of_intl(line); return;
    case BleuTokenizer::kZh: words = words_of_zh(line); return;
    case BleuTokenizer::kChar: words = words_of_char(line); return;
    case BleuTokenizer::kNone: words = line; return;
  }
}

}  // namespace brisk
