#include "text/regex/regex.h"

#include <limits>

#include "base/error.h"
#include "text/regex/regex_program.h"

namespace brisk {

size_t next_character(std::string_view text, size_t at) { return at + decode_utf8(text, at).length; }

size_t previous_character(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin + decode_utf8(text, begin).length == at ? begin : at - 1;  // else the last byte is not UTF-8
}

namespace {

using Kind = RegexInstruction::Kind;

// Looks for a match at one place by going back where it must. After kPatience returns it begins anew and remembers the
// states it has been in: coming to one again cannot lead to anything, as nothing else distinguishes two states.
class Matcher {
 public:
  // To find one match in `text`, at or after `from`.
  Matcher(const RegexProgram& program, std::string_view text, size_t from)
      : program_(program), text_(text), budget_(kBudget + kBudgetPerByte * (text.size() - from)) {}

  // The end of the match of the instructions from `pc` to kMatch that begins at `at`.
  std::optional<size_t> match(uint32_t pc, size_t at) {
    ++depth_;
    bool gave_up = false;
    auto end = run(pc, at, nullptr, gave_up);
    if (gave_up) {
      const size_t states = program_.instructions.size() * (text_.size() - at + 1);
      spend(states / 64);
      std::vector<bool> visited(states);
      end = run(pc, at, &visited, gave_up);
    }
    --depth_;
    return end;
  }

 private:
  static constexpr size_t kPatience = 4096;
  static constexpr size_t kBudget = 1 << 24, kBudgetPerByte = 1000;  // steps inside groups that look around

  // A group that looks ahead is matched anew for each state of what is around it, and so on with each that stands
  // inside another: their products are what no text should have to wait for. What is in no such group costs nothing
  // here.
  void spend(size_t steps) {
    if (depth_ < 2) return;
    if (steps > budget_) {
      user_error(
          "a regular expression of the tokenizer takes too long on a text of {} bytes: its look-ahead and look-behind "
          "groups are nested; use a tokenizer without them",
          text_.size());
    }
    budget_ -= steps;
  }

  struct Alternative {
    uint32_t pc;
    size_t at;
    size_t shortest;  // of a run: it may shrink to here; equal to `at` for a split
  };
  using Alternatives = std::vector<Alternative>;

  // One stack for the thread, so that a match costs no allocation; a match inside a match stands on top of it.
  static Alternatives& alternatives_of_this_thread() {
    thread_local Alternatives alternatives;
    return alternatives;
  }

  CodePoint character_at(size_t at) const {
    const auto byte = static_cast<unsigned char>(text_[at]);
    return byte < 128 ? CodePoint{byte, 1} : decode_utf8(text_, at);
  }

  bool is_word_at(size_t at) const { return is_word_character(character_at(at).value, WordRule::kOniguruma); }

  bool holds(const RegexInstruction& instruction, uint32_t pc, size_t at) {
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
        for (uint32_t i = 0; i < instruction.b; ++i) {
          if (begin == 0) return instruction.negated;
          begin = previous_character(text_, begin);
        }
        return match(pc + 1, begin).has_value() != instruction.negated;
      }
      default: return match(pc + 1, at).has_value() != instruction.negated;  // kLookahead
    }
  }

  std::optional<size_t> run(uint32_t pc, size_t at, std::vector<bool>* visited, bool& gave_up) {
    struct Rest {  // leaves the stack as it was, also where the budget is spent
      Alternatives& alternatives;
      size_t base = alternatives.size();
      ~Rest() { alternatives.resize(base); }
    } const rest{alternatives_};
    return run_above(rest.base, pc, at, visited, gave_up);
  }

  std::optional<size_t> run_above(size_t base, uint32_t pc, size_t at, std::vector<bool>* visited, bool& gave_up) {
    const size_t begin = at;
    const size_t places = text_.size() - begin + 1;
    size_t returns = 0;
    for (;;) {
      spend(1);
      bool failed = false;
      if (visited) {
        const size_t state = pc * places + (at - begin);
        failed = (*visited)[state];
        (*visited)[state] = true;
      }
      const RegexInstruction& instruction = program_.instructions[pc];
      if (!failed) {
        switch (instruction.kind) {
          case Kind::kMatch: return at;
          case Kind::kCharacter: {
            failed = at == text_.size();
            if (failed) break;
            const CodePoint character = character_at(at);
            failed = !program_.classes[instruction.a].contains(character.value);
            at += character.length;
            ++pc;
            break;
          }
          case Kind::kRun:
          case Kind::kOnlyRun: {
            const CharacterClass& wanted = program_.classes[instruction.a];
            uint32_t count = 0;
            size_t shortest = at;
            while (at < text_.size() && count < instruction.c) {
              const CodePoint character = character_at(at);
              if (!wanted.contains(character.value)) break;
              at += character.length;
              if (++count == instruction.b) shortest = at;
            }
            spend(count);
            failed = count < instruction.b;
            if (!failed && instruction.kind == Kind::kRun && at > shortest) {
              alternatives_.push_back({pc + 1, at, shortest});
            }
            ++pc;
            break;
          }
          case Kind::kSplit:
            alternatives_.push_back({instruction.b, at, at});
            pc = instruction.a;
            break;
          case Kind::kJump: pc = instruction.a; break;
          case Kind::kAtomic: {
            const auto end = match(pc + 1, at);
            failed = !end;
            if (end) at = *end;
            pc = instruction.a;
            break;
          }
          default:
            failed = !holds(instruction, pc, at);
            pc = instruction.kind == Kind::kLookahead || instruction.kind == Kind::kLookbehind ? instruction.a : pc + 1;
        }
      }
      if (!failed) {
        // A loop over nothing does not go back, so it is stopped by its alternatives instead.
        if (!visited && alternatives_.size() > base + kPatience) return gave_up = true, std::nullopt;
        continue;
      }
      if (alternatives_.size() == base) return std::nullopt;
      if (!visited && ++returns > kPatience) return gave_up = true, std::nullopt;
      Alternative& last = alternatives_.back();
      pc = last.pc;
      if (last.at > last.shortest) {
        at = last.at = previous_character(text_, last.at);
        if (last.at == last.shortest) alternatives_.pop_back();
      } else {
        at = last.at;
        alternatives_.pop_back();
      }
    }
  }

  const RegexProgram& program_;
  std::string_view text_;
  size_t budget_;
  int depth_ = 0;  // of matches inside each other
  Alternatives& alternatives_ = alternatives_of_this_thread();
};

}  // namespace

Regex::Regex(std::string_view pattern, const std::string& place)
    : program_(std::make_unique<const RegexProgram>(compile_regex(pattern, place))) {}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::optional<Regex::Match> Regex::find(std::string_view text, size_t from) const {
  Matcher matcher(*program_, text, from);
  for (size_t begin = from;; begin = next_character(text, begin)) {
    if (const auto end = matcher.match(0, begin)) return Match{begin, *end};
    if (begin >= text.size()) return std::nullopt;
  }
}

}  // namespace brisk
