// What a regular expression is compiled to (regex_compile.cpp) and matched with (regex.cpp).
//
//   a+|b     0 split 1, 3    1 run [a] 1..    2 match    3 character [b]    4 match
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex/character_class.h"

namespace brisk {

struct RegexInstruction {
  enum class Kind : uint8_t {
    kCharacter,   // one character of class `a`
    kRun,         // as many of class `a` as there are, at least `b` and at most `c`; fewer if the rest needs it
    kOnlyRun,     // the same, never fewer
    kSplit,       // goes on at `a`; if that leads to nothing, at `b`
    kJump,        // goes on at `a`
    kLookahead,   // the program from here to `a` matches at this place (or does not, if negated); goes on at `a`
    kLookbehind,  // the same, beginning `b` characters before this place
    kAtomic,      // the program from here to `a` matches; goes on at `a` behind it and never inside it again
    kLineBegin,
    kLineEnd,
    kTextBegin,
    kTextEnd,
    kTextEndOrNewline,
    kWordBoundary,
    kMatch,
  };
  Kind kind = Kind::kMatch;
  bool negated = false;
  uint32_t a = 0, b = 0, c = 0;
};

struct RegexProgram {
  std::vector<RegexInstruction> instructions;
  std::vector<CharacterClass> classes;
};

RegexProgram compile_regex(std::string_view pattern, const std::string& place);

}  // namespace brisk
