// One search of a text for a regular expression, from left to right, in time linear in the text.
//
//   RegexSearch search(program, text);
//   while (auto match = search.find(from)) from = match->end;
//
// It tries alternatives in order and goes back where one leads to nothing. Whether a state (an instruction and a
// position) leads to a match does not depend on how the search came to it. So when going back has become frequent, the
// search begins to remember the states that failed, and never enters one twice: neither in one match nor in a later one
// from another begin. A group that looks around or is atomic is a search of its own, whose states remember where its
// match ends.
//
// Cost: at most 12 steps for each instruction and byte (the tests of RegexCost count them; one for each level where
// loops over what may be nothing are nested). Memory: at most kMostBytes, beyond which a text is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "text/regex/regex_program.h"

namespace brisk {

class RegexMemo;

struct RegexMatch {
  size_t begin, end;
};

class RegexSearch {
 public:
  static constexpr size_t kMostBytes = size_t{512} << 20;

  enum class Memory { kWhenNeeded, kAtOnce };

  // It remembers states when they have become many; kAtOnce is for tests.
  RegexSearch(const RegexProgram& program, std::string_view text, Memory memory = Memory::kWhenNeeded);
  ~RegexSearch();
  RegexSearch(const RegexSearch&) = delete;
  RegexSearch& operator=(const RegexSearch&) = delete;

  // The first match that begins at or after `from`, which is not before any `from` given earlier.
  std::optional<RegexMatch> find(size_t from);

  // Instructions run and characters of runs looked at, so far.
  size_t steps() const { return steps_; }

 private:
  // Where to go on if the present way leads to nothing. Positions have 32 bits: longer texts are refused.
  struct Alternative {
    uint16_t pc;
    uint16_t level;
    uint32_t at;
    uint32_t shortest;  // of a run: it may shrink to here; equal to `at` for a split
    uint32_t trail;     // so much of the trail remains
  };
  using Alternatives = std::vector<Alternative>;
  // States of a group on the present way: those of `slot` at the characters from `from` to `to`.
  struct Passed {
    uint32_t slot, from, to;
  };
  struct State {
    uint32_t pc;
    uint32_t level;
    size_t at;
  };

  static Alternatives& alternatives_of_this_thread();

  std::optional<size_t> match(uint32_t pc, size_t at, bool in_group);
  std::optional<size_t> match_above(size_t base, State state, bool in_group);
  bool step(State& state, bool in_group, std::optional<size_t>& end);
  bool enter(uint32_t slot, size_t at, bool in_group, std::optional<size_t>& end);
  bool run(State& state, bool in_group, std::optional<size_t>& end);
  void only_run(State& state);
  State go_back();
  void remember_end(size_t trail_base, size_t end);
  bool holds(const RegexInstruction& instruction, uint32_t pc, size_t at);
  void push(const Alternative& alternative);
  void check_memory() const;
  void begin_to_remember();
  bool spend(size_t steps, size_t at);
  CodePoint character_at(size_t at) const;
  bool is_word_at(size_t at) const;

  const RegexProgram& program_;
  std::string_view text_;
  size_t steps_ = 0;
  size_t first_ = 0, furthest_ = 0;  // of the positions looked at
  bool gave_up_ = false;             // forgetful, it took too long
  std::unique_ptr<RegexMemo> memo_;  // none until then
  Alternatives* alternatives_;
  Alternatives own_alternatives_;  // with a memo
  std::vector<Passed> trail_;
};

}  // namespace brisk
