// What a regular expression is compiled to (regex_compile.cpp) and matched with (regex_search.cpp).
//
//   a+|b     0 split 1, 4    1 character [a]    2 run [a]    3 jump 5    4 character [b]    5 match
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex/character_class.h"

namespace brisk {

struct RegexInstruction {
  enum class Kind : uint8_t {
    kCharacter,   // one character of class `a`
    kRun,         // as many of class `a` as there are; fewer if the rest needs it
    kOnlyRun,     // the same, never fewer
    kSplit,       // goes on at `a`; if that leads to nothing, at `b`
    kJump,        // goes on at `a`
    kLoopEnd,     // goes back to `a`, the loop's head; to the next instruction if this iteration matched nothing
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
  static constexpr uint32_t kNoSlot = std::numeric_limits<uint32_t>::max();

  Kind kind = Kind::kMatch;
  bool negated = false;
  // Of the loops around this instruction (inside the same group), how many might match nothing in an iteration. Which
  // of them have matched something so far is part of a search's state: the outermost `level` of them, 0 to this.
  uint16_t loops = 0;
  uint32_t a = 0, b = 0;
  // Where a search remembers this instruction's states, `loops` + 1 for each position; kNoSlot if it need not. Those
  // inside groups have slots of their own kind (RegexProgram).
  uint32_t slot = kNoSlot;
};

struct RegexProgram {
  std::vector<RegexInstruction> instructions;
  std::vector<CharacterClass> classes;
  // For each position of a text:
  uint32_t outer_slots = 0;  // of instructions outside of groups: known to fail or not
  uint32_t group_slots = 0;  // of instructions inside groups: where the group's match ends; and ends of kOnlyRun (`b`)
};

RegexProgram compile_regex(std::string_view pattern, const std::string& place);

}  // namespace brisk
