// Writes the tree of a regular expression out as instructions.
#include <optional>

#include "base/error.h"
#include "text/regex/regex_node.h"

namespace brisk {

namespace {

using Kind = RegexInstruction::Kind;
using Node = RegexNode;

constexpr size_t kMostInstructions = 20000;

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
      case Node::Type::kGroup: write_group(node, node.assertion, node.negated); break;
    }
  }

  size_t add(const RegexInstruction& instruction) {
    if (program_.instructions.size() >= kMostInstructions) {
      user_error("{}: the regular expression \"{}\" repeats too much: it takes more than {} instructions", place_,
                 pattern_, kMostInstructions);
    }
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

  void write_group(const Node& node, Kind kind, bool negated) {
    uint32_t length = 0;
    if (kind == Kind::kLookbehind) {
      const auto fixed = fixed_length(node.children[0]);
      if (!fixed) {
        user_error(
            "{}: the regular expression \"{}\" looks behind for something of variable length, which brisk does "
            "not support; use a tokenizer without it",
            place_, pattern_);
      }
      length = *fixed;
    }
    const size_t group = add({.kind = kind, .negated = negated, .b = length});
    write(node.children[0]);
    add({.kind = Kind::kMatch});
    at(group).a = here();
  }

  void write_repeat(const Node& node) {
    const Node& child = node.children[0];
    const bool is_lazy = node.greed == Node::Greed::kLazy, is_possessive = node.greed == Node::Greed::kPossessive;
    if (child.type == Node::Type::kClass && !is_lazy) {
      add({.kind = is_possessive ? Kind::kOnlyRun : Kind::kRun,
           .a = child.character_class,
           .b = node.least,
           .c = node.most});
      return;
    }
    if (is_possessive) {
      Node group{.type = Node::Type::kGroup};
      group.children.push_back(node);
      group.children[0].greed = Node::Greed::kGreedy;
      write_group(group, Kind::kAtomic, false);
      return;
    }
    for (uint32_t i = 0; i < node.least; ++i) {
      const uint32_t before = here();
      write(child);
      if (here() == before) break;  // nothing, however often: (){1000} in itself again and again would take forever
    }
    const auto add_split = [&] { return add({.kind = Kind::kSplit}); };
    const auto set_split = [&](size_t split, uint32_t inside, uint32_t outside) {
      at(split).a = is_lazy ? outside : inside;
      at(split).b = is_lazy ? inside : outside;
    };
    if (node.most == kUnlimitedRepeats) {
      const size_t split = add_split();
      write(child);
      add({.kind = Kind::kJump, .a = static_cast<uint32_t>(split)});
      set_split(split, static_cast<uint32_t>(split) + 1, here());
      return;
    }
    std::vector<size_t> splits;
    for (uint32_t i = node.least; i < node.most; ++i) {
      splits.push_back(add_split());
      write(child);
    }
    for (const size_t split : splits) set_split(split, static_cast<uint32_t>(split) + 1, here());
  }

  // How many characters the node matches, if that is always the same.
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
};

}  // namespace

RegexProgram compile_regex(std::string_view pattern, const std::string& place) {
  RegexProgram program;
  const Node node = parse_regex(pattern, place, program.classes);
  Writer writer(pattern, place, program);
  writer.write(node);
  writer.add({.kind = Kind::kMatch});
  return program;
}

}  // namespace brisk
