#include "text/regex/regex.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "support/sample_text.h"
#include "text/pipeline/words.h"

namespace brisk {
namespace {

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  std::vector<std::string> found;
  const Regex regex(pattern, "place");
  for_each_match(regex, text, [&](const Regex::Match& match) {
    found.emplace_back(text.substr(match.begin, match.end - match.begin));
  });
  return found;
}

using Strings = std::vector<std::string>;

TEST(Regex, FindsLiteralsSetsAndCategories) {
  EXPECT_EQ(matches("ab|a", "abaab"), (Strings{"ab", "a", "ab"}));
  EXPECT_EQ(matches("a|ab", "abaab"), (Strings{"a", "a", "a"}));  // the first alternative wins, not the longest
  EXPECT_EQ(matches(R"(\p{Lu}\p{Ll}*)", "Ab éÉé xY"), (Strings{"Ab", "Éé", "Y"}));
  EXPECT_EQ(matches(R"([^\s\p{L}]+)", "a, 12 中。"), (Strings{",", "12", "。"}));
  EXPECT_EQ(matches(R"([a-c\]x-]+)", "ab]-xd"), (Strings{"ab]-x"}));
  EXPECT_EQ(matches(R"([\w&&[^\d_]]+)", "ab_12é"), (Strings{"ab", "é"}));
  EXPECT_EQ(matches(R"(\x41\u00e9\x{4E2D}\.)", "Aé中."), (Strings{"Aé中."}));
  EXPECT_EQ(matches(".+", "ab\ncd"), (Strings{"ab", "cd"}));
  EXPECT_EQ(matches(R"(\P{L}+|\p{^N}+)", "a1"), (Strings{"a", "1"}));
}

TEST(Regex, RepeatsGreedilyLazilyAndPossessively) {
  EXPECT_EQ(matches("a{2,3}", "aaaaa"), (Strings{"aaa", "aa"}));
  EXPECT_EQ(matches("a{2,3}?", "aaaaa"), (Strings{"aa", "aa"}));
  EXPECT_EQ(matches("a+?b", "aab"), (Strings{"aab"}));
  EXPECT_EQ(matches("a*+a", "aaa"), Strings{});
  EXPECT_EQ(matches("(?:ab)++a?", "ababa"), (Strings{"ababa"}));
  EXPECT_EQ(matches("(?>a|ab)c", "abc"), Strings{});
  EXPECT_EQ(matches("(a|ab)(c|bcd)(d*)", "abcd"), (Strings{"abcd"}));
  EXPECT_EQ(matches("x{,2}y", "xxxy"), (Strings{"xxy"}));
  EXPECT_EQ(matches("a{x", "a{x"), (Strings{"a{x"}));
}

TEST(Regex, LooksAroundAndKnowsTheEnds) {
  EXPECT_EQ(matches(R"(\s+(?!\S)|\s+)", "a   b  "), (Strings{"  ", " ", "  "}));
  EXPECT_EQ(matches("(?<=é)b|(?<!a)c", "éb ab ac xc"), (Strings{"b", "c"}));
  EXPECT_EQ(matches("^a|b$", "a\nab\nb"), (Strings{"a", "a", "b", "b"}));
  EXPECT_EQ(matches(R"(\Aa|b\z)", "a\nab\nb"), (Strings{"a", "b"}));
  EXPECT_EQ(matches(R"(\b\w)", "ab é1 _x"), (Strings{"a", "é", "_"}));
}

TEST(Regex, IgnoresCaseWhereAsked) {
  EXPECT_EQ(matches("(?i:'s|é)x|'s", "'SX 'sx 'ſx Éx 'S"), (Strings{"'sx", "'ſx", "Éx"}));  // the x is outside
  EXPECT_EQ(matches("(?i)straße|[a-c]+", "STRAßE aBC"), (Strings{"STRAßE", "aBC"}));
  EXPECT_EQ(matches("a(?i)b|c", "aB C Ab"), (Strings{"aB", "C"}));
}

TEST(Regex, TakesLinearTimeWhereGoingBackWouldTakeForever) {
  const std::string text(3000, 'a');
  EXPECT_EQ(matches("^(?:a|aa)+$", text).size(), 1u);
  EXPECT_EQ(matches("^(?:a*)*b", text), Strings{});
  EXPECT_EQ(matches("^(?:a+)+[bc]", text), Strings{});
  EXPECT_EQ(matches("(?:)*|x", "ab"), (Strings{"", "", ""}));
}

TEST(Regex, ReadsGroupsInsideEachOtherWithoutDoublingTheWork) {
  EXPECT_EQ(matches("(?:){1000}{1000}{1000}{1000}{1000}{1000}a", "ba"), Strings{"a"});
  std::string behind = "a";
  for (int i = 0; i < 45; ++i) behind = "(?:" + behind + "|b)";
  EXPECT_EQ(matches("(?<=" + behind + ")c", "ac bc cc"), (Strings{"c", "c"}));
}

TEST(Regex, EndsALoopWithAnIterationThatMatchesNothing) {
  EXPECT_EQ(matches("(?:|a)*", "aab"), (Strings{"", "", "", ""}));
  EXPECT_EQ(matches("(?:a|)*b", "aab"), (Strings{"aab"}));
  EXPECT_EQ(matches("(?:(?:a*)*|b)*c", "aabac"), (Strings{"aabac"}));
}

TEST(Regex, RefusesWhatItDoesNotKnow) {
  for (const char* pattern : {"(?<name>a)", "\\1", "a)", "(a", "[a", "*a", "\\p{Greek}", "\\p{L", "[[:alpha:]]", "\\",
                              "(?<=a+)b", "a{5,2}", "a{2000}", "(?:(?:a{1000}b){1000}c){1000}", "a{1000}{2}b",
                              "((((((((((((a*)*)*)*)*)*)*)*)*)*)*)*", "[b-a]", "\\x{110000}"}) {
    EXPECT_THROW(Regex(pattern, "place"), UserError) << pattern;
  }
}

TEST(Regex, AgreesWithTheWordsWrittenByHand) {
  const char* const kPatterns[] = {
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
  for (const char* pattern : kPatterns) {
    const auto words = known_word_pattern(pattern);
    ASSERT_TRUE(words) << pattern;
    for (uint32_t seed = 0; seed < 40; ++seed) {
      const std::string text = testing::tricky_text(150, seed) + testing::random_bytes(40, seed) + "'S 'LL 'ſ\n \n x";
      Strings by_hand;
      for (size_t begin = 0; begin < text.size();) {
        const size_t end = word_end(text, begin, *words);
        by_hand.push_back(text.substr(begin, end - begin));
        begin = end;
      }
      ASSERT_EQ(matches(pattern, text), by_hand) << pattern << ", seed " << seed;
    }
  }
  EXPECT_EQ(known_word_pattern(R"(\s+)"), std::nullopt);
}

}  // namespace
}  // namespace brisk
