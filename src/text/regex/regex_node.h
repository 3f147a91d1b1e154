// The tree of a regular expression: what regex_parse.cpp reads and regex_compile.cpp writes out as instructions.
//
//   RegexNode node = parse_regex("a+|b", "tokenizer.json: pre_tokenizer", classes);
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex/regex_program.h"

namespace brisk {

struct RegexNode {
  enum class Type { kEmpty, kClass, kSequence, kAlternatives, kRepeat, kAssertion, kGroup };
  enum class Greed { kGreedy, kLazy, kPossessive };
  Type type = Type::kEmpty;
  std::vector<RegexNode> children;
  uint32_t character_class = 0;  // kClass
  uint32_t least = 0, most = 0;  // kRepeat
  Greed greed = Greed::kGreedy;  // kRepeat
  RegexInstruction::Kind assertion =
      RegexInstruction::Kind::kMatch;  // kAssertion; kGroup: kAtomic, kLookahead, kLookbehind
  bool negated = false;
};

inline constexpr uint32_t kUnlimitedRepeats = std::numeric_limits<uint32_t>::max();

// Adds the classes of characters that occur to `classes`. `place` is named in errors.
RegexNode parse_regex(std::string_view pattern, const std::string& place, std::vector<CharacterClass>& classes);

}  // namespace brisk
