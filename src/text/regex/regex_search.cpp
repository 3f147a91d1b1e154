#include "text/regex/regex_search.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "text/regex/regex.h"
#include "text/regex/regex_memo.h"

namespace brisk {

namespace {

using Kind = RegexInstruction::Kind;

// So many steps for each byte and instruction a search may take before it begins to remember: usual patterns take about
// a quarter of a step, and remembering makes a step several times slower.
constexpr size_t kPatience = 1;
constexpr size_t kLeastPatience = 4096;

}  // namespace

// One stack for the thread, so that a short search costs no allocation; a match inside a match stands on top of it.
RegexSearch::Alternatives& RegexSearch::alternatives_of_this_thread() {
  thread_local Alternatives alternatives;
  return alternatives;
}

RegexSearch::RegexSearch(const RegexProgram& program, std::string_view text, Memory memory)
    : program_(program), text_(text), alternatives_(&alternatives_of_this_thread()) {
  if (text.size() >= std::numeric_limits<uint32_t>::max() - RegexMemo::kFirstEnd) {
    user_error(
        "the tokenizer splits by a regular expression, which a text of {} bytes in one piece is too long for: "
        "divide it into documents below 4 GiB",
        text.size());
  }
  if (memory == Memory::kAtOnce) begin_to_remember();
}

RegexSearch::~RegexSearch() = default;

std::optional<RegexMatch> RegexSearch::find(size_t from) {
  if (steps_ == 0) first_ = furthest_ = from;
  if (memo_) memo_->forget_before(from);
  for (size_t begin = from;; begin = next_character(text_, begin)) {
    auto end = match(0, begin, false);
    if (gave_up_) {
      gave_up_ = false;
      begin_to_remember();
      end = match(0, begin, false);
    }
    if (end) {
      if (memo_) memo_->clear_failed(*end);
      return RegexMatch{begin, *end};
    }
    if (begin >= text_.size()) return std::nullopt;
  }
}

void RegexSearch::begin_to_remember() {
  memo_ = std::make_unique<RegexMemo>(program_, text_.size(), kMostBytes / 2);
  alternatives_ = &own_alternatives_;
}

bool RegexSearch::spend(size_t steps, size_t at) {
  steps_ += steps;
  furthest_ = std::max(furthest_, at);
  if (memo_ || steps_ <= kLeastPatience + kPatience * program_.instructions.size() * (furthest_ - first_)) return true;
  gave_up_ = true;
  return false;
}

void RegexSearch::push(const Alternative& alternative) {
  if (alternatives_->size() == alternatives_->capacity()) check_memory();
  alternatives_->push_back(alternative);
}

void RegexSearch::check_memory() const {
  // What is about to double counts for what it becomes.
  const size_t bytes = 2 * alternatives_->capacity() * sizeof(Alternative) + 2 * trail_.capacity() * sizeof(Passed);
  if (bytes > kMostBytes / 2) RegexMemo::refuse_memory(text_.size());
}

CodePoint RegexSearch::character_at(size_t at) const {
  const auto byte = static_cast<unsigned char>(text_[at]);
  return byte < 128 ? CodePoint{byte, 1} : decode_utf8(text_, at);
}

bool RegexSearch::is_word_at(size_t at) const {
  return is_word_character(character_at(at).value, WordRule::kOniguruma);
}

bool RegexSearch::holds(const RegexInstruction& instruction, uint32_t pc, size_t at) {
  switch (instruction.kind) {
    case Kind::kLineBegin: return at == 0 || (text_[at - 1] == '\n' && at < text_.size());
    case Kind::kLineEnd: return at == text_.size() || text_[at] == '\n';
    case Kind::kTextBegin: return at == 0;
    case Kind::kTextEnd: return at == text_.size();
    case Kind::kTextEndOrNewline: return at == text_.size() || (at + 1 == text_.size() && text_[at] == '\n');
    case Kind::kWordBoundary: {
      const bool before = at > 0 && is_word_at(previous_character(text_, at));
      const bool after = at < text_.size() && is_word_at(at);
      return (before != after) != instruction.negated;
    }
    case Kind::kLookbehind: {
      size_t begin = at;
      spend(instruction.b, at);
      for (uint32_t i = 0; i < instruction.b; ++i) {
        if (begin == 0) return instruction.negated;
        begin = previous_character(text_, begin);
      }
      return match(pc + 1, begin, true).has_value() != instruction.negated;
    }
    default: return match(pc + 1, at, true).has_value() != instruction.negated;  // kLookahead
  }
}

// The end of the match of the instructions from `pc` to kMatch that begins at `at`.
std::optional<size_t> RegexSearch::match(uint32_t pc, size_t at, bool in_group) {
  struct Rest {  // leaves the stacks as they were, also where a text is refused
    Alternatives& alternatives;
    std::vector<Passed>& trail;
    size_t base = alternatives.size(), trail_base = trail.size();
    ~Rest() {
      alternatives.resize(base);
      trail.resize(trail_base);
    }
  } const rest{*alternatives_, trail_};
  const auto end = match_above(rest.base, {pc, 0, at}, in_group);
  if (end && in_group && memo_) remember_end(rest.trail_base, *end);
  return end;
}

std::optional<size_t> RegexSearch::match_above(size_t base, State state, bool in_group) {
  for (;;) {
    std::optional<size_t> end;
    const bool failed = !step(state, in_group, end);
    if (gave_up_) return std::nullopt;
    if (end) return end;
    if (!failed) continue;
    if (alternatives_->size() == base) return std::nullopt;
    state = go_back();
  }
}

RegexSearch::State RegexSearch::go_back() {
  Alternative& last = alternatives_->back();
  State state{last.pc, last.level, last.at};
  trail_.resize(last.trail);
  if (last.at == last.shortest) {
    alternatives_->pop_back();
    return state;
  }
  // A run that gives back its last character.
  state.at = previous_character(text_, last.at);
  last.at = static_cast<uint32_t>(state.at);
  if (last.at == last.shortest) {
    alternatives_->pop_back();
    return state;
  }
  const RegexInstruction& instruction = program_.instructions[last.pc - 1];
  state.level = instruction.loops;
  if (last.trail > 0) {  // inside a group, whose trail has the run's first state at least
    const auto second = static_cast<uint32_t>(next_character(text_, last.shortest));
    trail_.push_back({instruction.slot + instruction.loops, second, last.at});
  }
  return state;
}

// Whether the state is new; `end` is set where the group's match from here is known.
bool RegexSearch::enter(uint32_t slot, size_t at, bool in_group, std::optional<size_t>& end) {
  if (!in_group) return !memo_->mark_failed(slot, at);
  uint32_t& code = memo_->end(slot, at);
  if (code >= RegexMemo::kFirstEnd) end = RegexMemo::end_of_code(at, code);
  if (code != RegexMemo::kUnknown) return false;
  code = RegexMemo::kFailed;  // unless it turns out to be on the way to the match
  return true;
}

void RegexSearch::remember_end(size_t trail_base, size_t end) {
  for (size_t i = trail_base; i < trail_.size(); ++i) {
    const Passed& passed = trail_[i];
    for (size_t at = passed.from; at <= passed.to; at = next_character(text_, at)) {
      memo_->end(passed.slot, at) = RegexMemo::end_code(at, end);
      ++steps_;
      if (at == text_.size()) break;
    }
  }
}

// One instruction: false if it fails; `end` is set at the end of a match.
bool RegexSearch::step(State& state, bool in_group, std::optional<size_t>& end) {
  if (!spend(1, state.at)) return false;
  const RegexInstruction& instruction = program_.instructions[state.pc];
  const auto position = static_cast<uint32_t>(state.at);
  if (memo_ && instruction.slot != RegexInstruction::kNoSlot) {
    if (!enter(instruction.slot + state.level, state.at, in_group, end)) return false;
    if (in_group) {
      if (trail_.size() == trail_.capacity()) check_memory();
      trail_.push_back({instruction.slot + state.level, position, position});
    }
  }
  switch (instruction.kind) {
    case Kind::kMatch: end = state.at; return true;
    case Kind::kCharacter: {
      if (state.at == text_.size()) return false;
      const CodePoint character = character_at(state.at);
      if (!program_.classes[instruction.a].contains(character.value)) return false;
      state = {state.pc + 1, instruction.loops, state.at + character.length};
      return true;
    }
    case Kind::kRun: return run(state, in_group, end);
    case Kind::kOnlyRun: only_run(state); return !gave_up_;
    case Kind::kSplit:
      push({static_cast<uint16_t>(instruction.b), static_cast<uint16_t>(state.level), position, position,
            static_cast<uint32_t>(trail_.size())});
      state.pc = instruction.a;
      return true;
    case Kind::kJump: state.pc = instruction.a; return true;
    case Kind::kLoopEnd:
      if (state.level < instruction.loops) {
        ++state.pc;
      } else {
        state.pc = instruction.a;
        state.level = instruction.loops - 1u;
      }
      return true;
    case Kind::kAtomic: {
      const auto group_end = match(state.pc + 1, state.at, true);
      if (!group_end) return false;
      state = {instruction.a, *group_end > state.at ? instruction.loops : state.level, *group_end};
      return true;
    }
    case Kind::kLookahead:
    case Kind::kLookbehind:
      if (!holds(instruction, state.pc, state.at)) return false;
      state.pc = instruction.a;
      return true;
    default: return holds(instruction, state.pc, state.at) && (++state.pc, true);
  }
}

// The state itself has been entered. The run ends early where the rest of it is known: it has failed there, so that a
// shorter one may do, or the group's match from there is known.
bool RegexSearch::run(State& state, bool in_group, std::optional<size_t>& end) {
  const RegexInstruction& instruction = program_.instructions[state.pc];
  const CharacterClass& wanted = program_.classes[instruction.a];
  const uint32_t slot = instruction.slot + instruction.loops;
  const size_t begin = state.at;
  size_t at = begin, count = 0;
  bool is_known = false;
  while (at < text_.size()) {
    const CodePoint character = character_at(at);
    if (!wanted.contains(character.value)) break;
    if (memo_ && !enter(slot, at + character.length, in_group, end)) {
      is_known = true;
      break;
    }
    at += character.length;
    ++count;
  }
  if (!spend(count, at)) return false;
  const auto trail = static_cast<uint32_t>(trail_.size());
  if (memo_ && in_group && count > 0) {
    const auto second = static_cast<uint32_t>(next_character(text_, begin));
    trail_.push_back({slot, second, static_cast<uint32_t>(at)});
  }
  if (is_known && end) return true;
  if (count > 0) {
    push({static_cast<uint16_t>(state.pc + 1), static_cast<uint16_t>(state.level), static_cast<uint32_t>(at),
          static_cast<uint32_t>(begin), trail});
  }
  state = {state.pc + 1, count > 0 ? instruction.loops : state.level, at};
  return true;
}

void RegexSearch::only_run(State& state) {
  const RegexInstruction& instruction = program_.instructions[state.pc];
  const CharacterClass& wanted = program_.classes[instruction.a];
  const size_t begin = state.at;
  size_t at = begin, count = 0;
  size_t scanned = begin;
  while (at < text_.size()) {
    const CodePoint character = character_at(at);
    if (!wanted.contains(character.value)) break;
    if (memo_) {
      if (const uint32_t code = memo_->end(instruction.b, at); code != RegexMemo::kUnknown) {
        at = RegexMemo::end_of_code(at, code);
        break;
      }
    }
    at += character.length;
    scanned = at;
    ++count;
  }
  spend(count, at);
  if (memo_) {
    for (size_t p = begin; p < scanned; p = next_character(text_, p)) {
      memo_->end(instruction.b, p) = RegexMemo::end_code(p, at);
    }
  }
  state = {state.pc + 1, at > begin ? instruction.loops : state.level, at};
}

}  // namespace brisk
