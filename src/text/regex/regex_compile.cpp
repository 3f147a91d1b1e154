// Writes the tree of a regular expression out as instructions.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text/printable.h"
#include "text/regex/regex_node.h"

namespace brisk {

namespace {

using Kind = RegexInstruction::Kind;
using Node = RegexNode;

// What a search costs is proportional to these two: usual patterns have 40 instructions and no such loop.
constexpr size_t kMostInstructions = 1000;
constexpr uint16_t kDeepestLoops = 10;

bool may_be_empty(const Node& node) {
  switch (node.type) {
    case Node::Type::kEmpty:
    case Node::Type::kAssertion: return true;
    case Node::Type::kClass: return false;
    case Node::Type::kSequence: return std::ranges::all_of(node.children, may_be_empty);
    case Node::Type::kAlternatives: return std::ranges::any_of(node.children, may_be_empty);
    case Node::Type::kRepeat: return node.least == 0 || may_be_empty(node.children[0]);
    case Node::Type::kGroup: return node.assertion != Kind::kAtomic || may_be_empty(node.children[0]);
  }
  return true;
}

class Writer {
 public:
  Writer(std::string_view pattern, const std::string& place, RegexProgram& program)
      : pattern_(pattern), place_(place), program_(program) {}

  void write(const Node& node) {
    switch (node.type) {
      case Node::Type::kEmpty: break;
      case Node::Type::kClass: add({.kind = Kind::kCharacter, .a = node.character_class}); break;
      case Node::Type::kSequence:
        for (const Node& child : node.children) write(child);
        break;
      case Node::Type::kAlternatives: write_alternatives(node); break;
      case Node::Type::kRepeat: write_repeat(node); break;
      case Node::Type::kAssertion: add({.kind = node.assertion, .negated = node.negated}); break;
      case Node::Type::kGroup: write_group(node); break;
    }
  }

  size_t add(RegexInstruction instruction) {
    if (program_.instructions.size() >= kMostInstructions) {
      user_error(
          "{}: the regular expression \"{}\" is too large: it takes more than {} instructions with its counted repeats "
          "written out; use a tokenizer with a simpler pattern",
          place_, printable(pattern_), kMostInstructions);
    }
    instruction.loops = loops_;
    program_.instructions.push_back(instruction);
    return program_.instructions.size() - 1;
  }

 private:
  uint32_t here() const { return static_cast<uint32_t>(program_.instructions.size()); }
  RegexInstruction& at(size_t index) { return program_.instructions[index]; }

  void write_alternatives(const Node& node) {
    std::vector<size_t> jumps;
    for (size_t i = 0; i < node.children.size(); ++i) {
      const bool is_last = i + 1 == node.children.size();
      const size_t split = is_last ? 0 : add({.kind = Kind::kSplit, .a = here() + 1});
      write(node.children[i]);
      if (is_last) break;
      jumps.push_back(add({.kind = Kind::kJump}));
      at(split).b = here();
    }
    for (const size_t jump : jumps) at(jump).a = here();
  }

  template <typename Write>
  void write_group(Kind kind, bool negated, uint32_t length, const Write& write_inside) {
    const size_t group = add({.kind = kind, .negated = negated, .b = length});
    const uint16_t outer_loops = loops_;
    loops_ = 0;
    write_inside();
    add({.kind = Kind::kMatch});
    loops_ = outer_loops;
    at(group).a = here();
  }

  void write_group(const Node& node) {
    uint32_t length = 0;
    if (node.assertion == Kind::kLookbehind) {
      const auto fixed = fixed_length(node.children[0]);
      if (!fixed) {
        user_error(
            "{}: the regular expression \"{}\" looks behind for something of variable length, which brisk does "
            "not support; use a tokenizer without it",
            place_, printable(pattern_));
      }
      length = *fixed;
    }
    write_group(node.assertion, node.negated, length, [&] { write(node.children[0]); });
  }

  void write_repeat(const Node& node) {
    const Node& child = node.children[0];
    const bool is_lazy = node.greed == Node::Greed::kLazy, is_possessive = node.greed == Node::Greed::kPossessive;
    const bool is_run = child.type == Node::Type::kClass && !is_lazy && node.most == kUnlimitedRepeats;
    if (is_possessive && !is_run) {
      return write_group(Kind::kAtomic, false, 0, [&] { write_repeat(node, is_lazy); });
    }
    if (!is_run) return write_repeat(node, is_lazy);
    for (uint32_t i = 0; i < node.least; ++i) write(child);
    add({.kind = is_possessive ? Kind::kOnlyRun : Kind::kRun, .a = child.character_class});
  }

  void write_repeat(const Node& node, bool is_lazy) {
    const Node& child = node.children[0];
    for (uint32_t i = 0; i < node.least; ++i) write(child);
    const auto add_split = [&] { return add({.kind = Kind::kSplit}); };
    const auto set_split = [&](size_t split, uint32_t inside, uint32_t outside) {
      at(split).a = is_lazy ? outside : inside;
      at(split).b = is_lazy ? inside : outside;
    };
    if (node.most == kUnlimitedRepeats) {
      const auto split = static_cast<uint32_t>(add_split());
      const bool checks_iterations = may_be_empty(child);
      if (checks_iterations && ++loops_ > kDeepestLoops) {
        user_error(
            "{}: the regular expression \"{}\" nests more than {} loops over what may be nothing, as (a*)* does; use a "
            "tokenizer with a simpler pattern",
            place_, printable(pattern_), kDeepestLoops);
      }
      write(child);
      add({.kind = checks_iterations ? Kind::kLoopEnd : Kind::kJump, .a = split});
      if (checks_iterations) --loops_;
      set_split(split, split + 1, here());
      return;
    }
    std::vector<size_t> splits;
    for (uint32_t i = node.least; i < node.most; ++i) {
      splits.push_back(add_split());
      write(child);
    }
    for (const size_t split : splits) set_split(split, static_cast<uint32_t>(split) + 1, here());
  }

  // How many characters the node matches, if that is always the same. (A length that wraps around belongs to a program
  // that is too large.)
  static std::optional<uint32_t> fixed_length(const Node& node) {
    switch (node.type) {
      case Node::Type::kEmpty:
      case Node::Type::kAssertion: return 0;
      case Node::Type::kClass: return 1;
      case Node::Type::kSequence: {
        uint32_t sum = 0;
        for (const Node& child : node.children) {
          const auto length = fixed_length(child);
          if (!length) return std::nullopt;
          sum += *length;
        }
        return sum;
      }
      case Node::Type::kAlternatives: {
        const auto first = fixed_length(node.children[0]);
        // The first is not measured again: alternatives inside alternatives would double the work at each level.
        for (size_t i = 1; i < node.children.size(); ++i) {
          if (fixed_length(node.children[i]) != first) return std::nullopt;
        }
        return first;
      }
      case Node::Type::kRepeat: {
        const auto length = fixed_length(node.children[0]);
        return length && node.least == node.most ? std::optional(*length * node.least) : std::nullopt;
      }
      case Node::Type::kGroup:
        return node.assertion == Kind::kAtomic ? fixed_length(node.children[0]) : std::optional<uint32_t>(0);
    }
    return std::nullopt;
  }

  std::string_view pattern_;
  const std::string& place_;
  RegexProgram& program_;
  uint16_t loops_ = 0;  // around what is being written, inside the same group
};

// A state is remembered where ways meet: everything between two such places is a tree, run through once for each time
// that its root is entered.
void assign_slots(RegexProgram& program) {
  auto& instructions = program.instructions;
  std::vector<uint32_t> ways(instructions.size(), 0);  // that lead to each instruction; 2: many
  std::vector<bool> in_group(instructions.size(), false);
  ++ways[0];
  for (uint32_t pc = 0; pc < instructions.size(); ++pc) {
    const RegexInstruction& instruction = instructions[pc];
    switch (instruction.kind) {
      case Kind::kMatch: break;
      case Kind::kSplit: ++ways[instruction.a], ++ways[instruction.b]; break;
      case Kind::kJump: ++ways[instruction.a]; break;
      case Kind::kLoopEnd: ++ways[instruction.a], ++ways[pc + 1]; break;
      case Kind::kRun:
      case Kind::kOnlyRun: ways[pc + 1] += 2; break;  // from each character of the run
      case Kind::kAtomic:
      case Kind::kLookahead:
      case Kind::kLookbehind:
        ways[instruction.a] += instruction.kind == Kind::kAtomic ? 2 : 1;
        ++ways[pc + 1];
        std::fill(in_group.begin() + pc + 1, in_group.begin() + instruction.a, true);
        break;
      default: ++ways[pc + 1];
    }
  }
  for (uint32_t pc = 0; pc < instructions.size(); ++pc) {
    RegexInstruction& instruction = instructions[pc];
    uint32_t& slots = in_group[pc] ? program.group_slots : program.outer_slots;
    if (instruction.kind == Kind::kRun || (ways[pc] > 1 && instruction.kind != Kind::kMatch)) {
      instruction.slot = slots;
      slots += instruction.loops + 1u;
    }
    if (instruction.kind == Kind::kOnlyRun) instruction.b = program.group_slots++;
  }
}

}  // namespace

RegexProgram compile_regex(std::string_view pattern, const std::string& place) {
  RegexProgram program;
  const Node node = parse_regex(pattern, place, program.classes);
  Writer writer(pattern, place, program);
  writer.write(node);
  writer.add({.kind = Kind::kMatch});
  assign_slots(program);
  return program;
}

}  // namespace brisk
