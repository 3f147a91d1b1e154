#include "text/pipeline/words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/sample_text.h"

namespace brisk {
namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view text) {
  Words words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = word_end(text, begin);
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

// The expected words are those of GPT-2's regular expression.
TEST(Words, TakeTheSpaceBeforeThem) {
  EXPECT_EQ(words_of("Hello world"), (Words{"Hello", " world"}));
  EXPECT_EQ(words_of(" Hello"), (Words{" Hello"}));
  EXPECT_EQ(words_of(""), Words{});
}

TEST(Words, SplitContractionsInLowerCaseOnly) {
  EXPECT_EQ(words_of("I've we're he'll it's don't I'm she'd"),
            (Words{"I", "'ve", " we", "'re", " he", "'ll", " it", "'s", " don", "'t", " I", "'m", " she", "'d"}));
  EXPECT_EQ(words_of("IT'S"), (Words{"IT", "'", "S"}));
  EXPECT_EQ(words_of("'sweet"), (Words{"'s", "weet"}));
  EXPECT_EQ(words_of("a 's"), (Words{"a", " '", "s"}));
  EXPECT_EQ(words_of("''s"), (Words{"''", "s"}));
  EXPECT_EQ(words_of("x'l"), (Words{"x", "'", "l"}));
  EXPECT_EQ(words_of("x'r"), (Words{"x", "'", "r"}));
  EXPECT_EQ(words_of("x'"), (Words{"x", "'"}));
  EXPECT_EQ(words_of("l’été"), (Words{"l", "’", "été"}));
}

TEST(Words, LeaveTheLastOfManySpacesToTheWordThatFollows) {
  EXPECT_EQ(words_of("a  b"), (Words{"a", " ", " b"}));
  EXPECT_EQ(words_of("a    b"), (Words{"a", "   ", " b"}));
  EXPECT_EQ(words_of("a  "), (Words{"a", "  "}));
  EXPECT_EQ(words_of("a "), (Words{"a", " "}));
  EXPECT_EQ(words_of("   "), (Words{"   "}));
}

TEST(Words, KeepNewlinesAndTabsApart) {
  EXPECT_EQ(words_of("a\nb"), (Words{"a", "\n", "b"}));
  EXPECT_EQ(words_of("a\n\nb"), (Words{"a", "\n", "\n", "b"}));
  EXPECT_EQ(words_of("a\n b"), (Words{"a", "\n", " b"}));
  EXPECT_EQ(words_of("a \nb"), (Words{"a", " ", "\n", "b"}));
  EXPECT_EQ(words_of("a\r\n\r\nb"), (Words{"a", "\r\n\r", "\n", "b"}));
  EXPECT_EQ(words_of("a\tb"), (Words{"a", "\t", "b"}));
  EXPECT_EQ(words_of("a\u00A0b"), (Words{"a", "\u00A0", "b"}));
  EXPECT_EQ(words_of("a \u3000\u3000b"), (Words{"a", " \u3000", "\u3000", "b"}));
  EXPECT_EQ(words_of("end\n"), (Words{"end", "\n"}));
}

TEST(Words, SeparateLettersDigitsAndSymbols) {
  EXPECT_EQ(words_of("x1 y22"), (Words{"x", "1", " y", "22"}));
  EXPECT_EQ(words_of("3.14, 1,000!"), (Words{"3", ".", "14", ",", " 1", ",", "000", "!"}));
  EXPECT_EQ(words_of("f(x) = y_1;"), (Words{"f", "(", "x", ")", " =", " y", "_", "1", ";"}));
  EXPECT_EQ(words_of("<|endoftext|>"), (Words{"<|", "endoftext", "|>"}));
  EXPECT_EQ(words_of("½Ⅷ१२"), (Words{"½Ⅷ१२"}));
}

TEST(Words, KnowOtherScripts) {
  EXPECT_EQ(words_of("中文 日本語。"), (Words{"中文", " 日本語", "。"}));
  EXPECT_EQ(words_of("Привет, мир"), (Words{"Привет", ",", " мир"}));
  EXPECT_EQ(words_of("e\u0301te"), (Words{"e", "\u0301", "te"}));  // a combining mark is no letter
  EXPECT_EQ(words_of("ok 😀👍 x"), (Words{"ok", " 😀👍", " x"}));
  EXPECT_EQ(words_of("👩\u200D👧"), (Words{"👩\u200D👧"}));
}

TEST(Words, TakeBadBytesForSymbols) {
  EXPECT_EQ(words_of("a\xFF\xFE b"), (Words{"a", "\xFF\xFE", " b"}));
  EXPECT_EQ(words_of("a \xFF!"), (Words{"a", " \xFF!"}));
  EXPECT_EQ(words_of("caf\xC3"), (Words{"caf", "\xC3"}));              // the first half of é
  EXPECT_EQ(words_of("\xE2\x80 \x83"), (Words{"\xE2\x80", " \x83"}));  // a cut em space is no space
}

TEST(Words, CoverAnyBytesWithoutGaps) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::string bytes = testing::random_bytes(5000, seed);
    std::string joined;
    for (const std::string& word : words_of(bytes)) joined += word;
    ASSERT_EQ(joined, bytes);
  }
}

TEST(Words, AreTheSameAfterACutBetweenThem) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::string text = testing::tricky_text(60, seed);
    if (seed % 4 == 3) text += testing::random_bytes(60, seed);
    const Words whole = words_of(text);
    for (size_t from = 0; from <= text.size(); ++from) {
      const size_t cut = cut_between_words(text, from);
      ASSERT_GE(cut, from);
      ASSERT_LE(cut, text.size());
      Words parts = words_of(std::string_view(text).substr(0, cut));
      for (const std::string& word : words_of(std::string_view(text).substr(cut))) parts.push_back(word);
      ASSERT_EQ(parts, whole) << "cut at " << cut << " of: " << text;
    }
  }
}

TEST(Words, CanBeCutWhereASpaceOrANewlineStandsAlone) {
  EXPECT_EQ(cut_between_words("one two", 0), 3u);
  EXPECT_EQ(cut_between_words("one two", 4), 7u);
  EXPECT_EQ(cut_between_words("one\ntwo", 0), 4u);
  EXPECT_EQ(cut_between_words("一\n二", 0), 4u);
  EXPECT_EQ(cut_between_words("one  two", 0), 8u);
}

}  // namespace
}  // namespace brisk
