// Text for the tests: words of a small language with Zipf-like frequencies, and the symbols that splitting stumbles on.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace brisk::testing {

inline std::string random_bytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() & 0xFF);
  return bytes;
}

// Valid UTF-8, rich in white space of all kinds, contractions, digits, and scripts other than Latin.
inline std::string tricky_text(size_t symbols, uint32_t seed) {
  static const std::vector<std::string> kSymbols = {
      " ",   " ",           "  ",     "\n",      "\n\n", "\t",   "\r\n", "\u00a0", "\u3000", "\u2003", "'s",   "'ll",
      "'re", "'",           "''",     "a",       "the",  "Don",  "we",   "x",      "12",     "7",      "3.14", "!",
      "...", "-",           "é",      "e\u0301", "ß",    "中文", "日",   "한",     "ж",      "१२",     "Ⅷ",    "½",
      "😀",   "👩‍👧", "\u200b", "_",       "<|",   "|>",   "\x1c", "\x7f",   "\u0085"};
  std::mt19937 random(seed);
  std::string text;
  for (size_t i = 0; i < symbols; ++i) text += kSymbols[random() % kSymbols.size()];
  return text;
}

// Like prose: about 2,000 different words, frequent ones frequent, with punctuation and lines.
inline std::string prose(size_t words, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::string> lexicon;
  static const char* const kSyllables[] = {"ba", "ne", "shi", "lor", "ta", "mi", "ön", "gre", "pu", "wa", "ek", "zi"};
  for (int i = 0; i < 2000; ++i) {
    std::string word;
    for (unsigned syllables = 1 + random() % 4; syllables > 0; --syllables) word += kSyllables[random() % 12];
    lexicon.push_back(word);
  }
  std::string text;
  for (size_t i = 0; i < words; ++i) {
    const double uniform = static_cast<double>(random()) / 4294967296.0;
    text += lexicon[static_cast<size_t>(2000 * uniform * uniform * uniform)];
    const unsigned ending = random() % 20;
    text += ending == 0 ? ".\n" : ending == 1 ? ", " : ending == 2 ? "'s " : " ";
  }
  return text;
}

}  // namespace brisk::testing
