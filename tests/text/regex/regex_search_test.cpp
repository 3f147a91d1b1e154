// Searches compared with a plain matcher that only follows the tree of a pattern, and their cost counted in steps.
#include "text/regex/regex_search.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/random.h"
#include "text/regex/regex.h"
#include "text/regex/regex_node.h"

namespace brisk {
namespace {

using Kind = RegexInstruction::Kind;
using Match = std::pair<size_t, size_t>;

// The meaning of a pattern, as directly as it can be written down: exponential, so for small texts.
class PlainMatcher {
 public:
  using GoOn = std::function<bool(size_t)>;

  explicit PlainMatcher(std::string_view pattern) : root_(parse_regex(pattern, "place", classes_)) {}

  // Nothing if it takes too long.
  std::optional<std::vector<Match>> matches(std::string_view text) {
    text_ = text;
    work_ = 0;
    std::vector<Match> found;
    std::optional<size_t> last_end;
    for (size_t from = 0; from <= text.size();) {
      std::optional<Match> match;
      for (size_t begin = from; begin <= text.size() && !match; ++begin) {
        if (const auto end = end_of(root_, begin)) match = {begin, *end};
      }
      if (work_ > kMostWork) return std::nullopt;
      if (!match) break;
      if (match->first == match->second && last_end == match->second) {
        ++from;
        continue;
      }
      found.push_back(*match);
      last_end = from = match->second;
    }
    return found;
  }

 private:
  static constexpr int kMostWork = 200000;

  std::optional<size_t> end_of(const RegexNode& node, size_t at) {
    std::optional<size_t> end;
    match(node, at, [&](size_t here) { return end = here, true; });
    return end;
  }

  bool match(const RegexNode& node, size_t at, const GoOn& go_on) {
    if (++work_ > kMostWork) return false;
    switch (node.type) {
      case RegexNode::Type::kEmpty: return go_on(at);
      case RegexNode::Type::kClass:
        return at < text_.size() && classes_[node.character_class].contains(static_cast<unsigned char>(text_[at])) &&
               go_on(at + 1);
      case RegexNode::Type::kSequence: return sequence(node, 0, at, go_on);
      case RegexNode::Type::kAlternatives:
        return std::ranges::any_of(node.children, [&](const RegexNode& child) { return match(child, at, go_on); });
      case RegexNode::Type::kRepeat: {
        if (node.greed == RegexNode::Greed::kPossessive) {
          std::optional<size_t> end;
          repeat(node, 0, at, [&](size_t here) { return end = here, true; });
          return end && go_on(*end);
        }
        return repeat(node, 0, at, go_on);
      }
      case RegexNode::Type::kAssertion: return holds(node, at) && go_on(at);
      case RegexNode::Type::kGroup: {
        if (node.assertion == Kind::kAtomic) {
          const auto end = end_of(node.children[0], at);
          return end && go_on(*end);
        }
        bool found = false;
        if (node.assertion == Kind::kLookahead) {
          found = end_of(node.children[0], at).has_value();
        } else {  // of fixed length: only one begin can end here
          for (size_t begin = 0; begin <= at && !found; ++begin) found = end_of(node.children[0], begin) == at;
        }
        return found != node.negated && go_on(at);
      }
    }
    return false;
  }

  bool sequence(const RegexNode& node, size_t index, size_t at, const GoOn& go_on) {
    if (index == node.children.size()) return go_on(at);
    return match(node.children[index], at, [&](size_t here) { return sequence(node, index + 1, here, go_on); });
  }

  bool repeat(const RegexNode& node, uint32_t count, size_t at, const GoOn& go_on) {
    const auto once_more = [&] {
      return match(node.children[0], at, [&](size_t here) {
        const bool is_endless_nothing = node.most == kUnlimitedRepeats && count >= node.least && here == at;
        return is_endless_nothing ? go_on(here) : repeat(node, count + 1, here, go_on);
      });
    };
    if (count < node.least) return once_more();
    if (count == node.most) return go_on(at);
    return node.greed == RegexNode::Greed::kLazy ? go_on(at) || once_more() : once_more() || go_on(at);
  }

  bool holds(const RegexNode& node, size_t at) const {
    const auto is_word = [&](size_t i) { return i < text_.size() && (text_[i] == 'a' || text_[i] == 'b'); };
    switch (node.assertion) {
      case Kind::kLineBegin: return at == 0 || (text_[at - 1] == '\n' && at < text_.size());
      case Kind::kLineEnd: return at == text_.size() || text_[at] == '\n';
      case Kind::kTextBegin: return at == 0;
      case Kind::kTextEnd: return at == text_.size();
      default: return ((at > 0 && is_word(at - 1)) != is_word(at)) != node.negated;
    }
  }

  std::vector<CharacterClass> classes_;
  RegexNode root_;
  std::string_view text_;
  int work_ = 0;
};

class RandomPattern {
 public:
  explicit RandomPattern(uint64_t seed) : seed_(seed) {}

  std::string alternatives(int depth) {
    std::string pattern = sequence(depth);
    for (int i = below(4); i > 1; --i) pattern += "|" + sequence(depth);
    return pattern;
  }

  std::string text() {
    std::string text;
    for (int i = below(12); i > 0; --i) text += one_of({"a", "b", "a", "b", " ", "\n"});
    return text;
  }

 private:
  int below(int limit) { return static_cast<int>(random_key({seed_, ++draws_}) % static_cast<uint64_t>(limit)); }
  std::string one_of(std::initializer_list<const char*> choices) {
    return *(choices.begin() + below(static_cast<int>(choices.size())));
  }

  std::string sequence(int depth) {
    std::string pattern;
    for (int i = below(4); i > 0; --i) pattern += atom(depth) + repeat();
    return pattern;
  }

  std::string atom(int depth) {
    if (depth > 0 && below(3) == 0) {
      return one_of({"(", "(?:", "(?:", "(?>", "(?=", "(?!"}) + alternatives(depth - 1) + ")";
    }
    return one_of({"a", "b", "a", "b", ".", "[ab]", "\\s", "\\b", "^", "$", "(?<=a)", "(?<!ab)", "\\B"});
  }

  std::string repeat() {
    return one_of({"", "", "", "*", "+", "?", "*?", "+?", "??", "*+", "?+", "{2}", "{1,2}", "{2,}", "{0,2}?"});
  }

  uint64_t seed_, draws_ = 0;
};

std::vector<Match> matches_of(RegexSearch&& search, std::string_view text) {
  std::vector<Match> found;
  for_each_match(search, text, [&](const RegexMatch& match) { found.emplace_back(match.begin, match.end); });
  return found;
}

TEST(RegexSearch, FindsWhatFollowingThePatternFinds) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    RandomPattern random(seed);
    const std::string pattern = random.alternatives(2);
    const Regex regex(pattern, "place");
    PlainMatcher plain(pattern);
    for (int i = 0; i < 3; ++i) {
      const std::string text = random.text();
      const auto expected = plain.matches(text);
      if (!expected) continue;
      ASSERT_EQ(matches_of({regex.program(), text}, text), *expected) << pattern << " on " << text;
      ASSERT_EQ(matches_of({regex.program(), text, RegexSearch::Memory::kAtOnce}, text), *expected)
          << "remembering, " << pattern << " on " << text;
      ++compared;
    }
  }
  EXPECT_GT(compared, 11000);
}

constexpr double kMostSteps = 12;  // for each instruction and byte, as regex_search.h promises

double cost_of(const std::string& pattern, const std::string& text) {
  const Regex regex(pattern, "place");
  RegexSearch search(regex.program(), text);
  for_each_match(search, text, [](const RegexMatch&) {});
  return static_cast<double>(search.steps()) /
         (static_cast<double>(regex.program().instructions.size()) * static_cast<double>(text.size() + 1));
}

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

TEST(RegexCost, IsLinearInTheTextForPatternsThatExplode) {
  std::string nested_ahead = "b", nested_atomic = "a*";
  for (int i = 0; i < 12; ++i)
    nested_ahead = "(?=.*" + nested_ahead + ")", nested_atomic = "(?>" + nested_atomic + ")*";
  const std::string patterns[] = {"(a*)*b",
                                  "(a+)+b",
                                  "(a|aa)+b",
                                  "(a|a)*b",
                                  "(a?){30}a{30}b",
                                  "a+b",
                                  "a*a*a*a*b",
                                  ".*.*=.*",
                                  "a*b|a",
                                  "a*?b|a",
                                  "(a*?)*?b",
                                  "((a{1,5}){1,5}){1,5}b",
                                  "(?:a{1,20}){1,20}c",
                                  "(?=a*b)c|a",
                                  "(?!a*b)c|a",
                                  "(?=(a+)+b)a",
                                  "a*+b|a",
                                  "(?>a*)b|a",
                                  "(?>(?:a|aa)*)b|a",
                                  "(?:a++)*b|a",
                                  "(?<=(a|a)(a|a)(a|a)(a|a))b",
                                  "(?<=(?=.*b)a)c|a",
                                  "(^a|a)*b",
                                  "(|a)*b",
                                  "(|a|aa)+?b",
                                  "((a*)*)*b",
                                  "\\b(a+)*\\b.b",
                                  "(?:a(?=.*b))*c|a",
                                  "([a-z]+)*[0-9]",
                                  "(.+)+\\z!",
                                  nested_ahead,
                                  nested_atomic + "b"};
  const std::string texts[] = {"a", "aab", "ab", "a b", "ab=", "aaaaaaaaaaaaaaaaaaaaab"};
  for (const std::string& pattern : patterns) {
    for (const std::string& text : texts) {
      const int length = static_cast<int>(text.size());
      double worst = 0;
      for (const std::string& whole :
           {repeated(text, 500 / length), repeated(text, 3000 / length), repeated(text, 3000 / length) + "b"}) {
        worst = std::max(worst, cost_of(pattern, whole));
      }
      EXPECT_LE(worst, kMostSteps) << pattern << " on " << text;
    }
  }
}

TEST(RegexCost, OfRandomPatternsIsLinearToo) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    RandomPattern random(seed);
    const std::string pattern = random.alternatives(2), text = random.text();
    if (text.empty()) continue;
    const double cost = std::max(cost_of(pattern, repeated(text, 1 + 200 / static_cast<int>(text.size()))),
                                 cost_of(pattern, repeated(text, 2000 / static_cast<int>(text.size()))));
    EXPECT_LE(cost, kMostSteps) << pattern << " on " << text;
  }
}

}  // namespace
}  // namespace brisk
