// Reads the text of a regular expression. The grammar is small enough to be read by descent.
#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/text/printable.h"
#include "text/regex/regex_node.h"

namespace brisk {

namespace {

using Kind = RegexInstruction::Kind;
using Item = CharacterClass::Item;
using Node = RegexNode;

constexpr uint32_t kMostRepeats = 1000;
constexpr size_t kMostBytes = 1 << 16;
constexpr size_t kMostNestedSets = 64;  // a character is looked up in each of them
constexpr int kDeepest = 50;

constexpr std::array<std::string_view, kGeneralCategories> kCategoryNames = {
    "Cn", "Cc", "Cf", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl",
    "No", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"};

class Parser {
 public:
  Parser(std::string_view pattern, const std::string& place, std::vector<CharacterClass>& classes)
      : pattern_(pattern), place_(place), classes_(classes) {}

  Node parse() {
    if (pattern_.size() > kMostBytes) {
      user_error(
          "{}: a regular expression of {} bytes, \"{}\"; expected at most {}: use a tokenizer with a simpler one",
          place_, pattern_.size(), printable(pattern_), kMostBytes);
    }
    Node node = parse_alternatives(0);
    if (at_ < pattern_.size()) refuse("an unmatched ')'");
    return node;
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    user_error(
        "{}: the regular expression \"{}\" has {} at byte {}, which brisk does not support; use one of the usual "
        "patterns (GPT-2's, cl100k's, Llama 3's), or a tokenizer without it",
        place_, printable(pattern_), what, at_);
  }

  bool starts_with(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  bool at_end() const { return at_ >= pattern_.size(); }

  uint32_t take_character() {
    if (at_end()) refuse("its end where a character is expected");
    const CodePoint character = decode_utf8(pattern_, at_);
    if (character.value == kInvalidCodePoint) refuse("a byte that is not UTF-8");
    at_ += character.length;
    return character.value;
  }

  Node parse_alternatives(int depth) {
    if (depth > kDeepest) refuse("groups nested too deep");
    const bool outer_ignores_case = ignores_case_;
    Node alternatives{.type = Node::Type::kAlternatives};
    do {
      alternatives.children.push_back(parse_sequence(depth));
    } while (take("|"));
    ignores_case_ = outer_ignores_case;
    if (alternatives.children.size() == 1) {
      Node only = std::move(alternatives.children[0]);
      return only;
    }
    return alternatives;
  }

  Node parse_sequence(int depth) {
    Node sequence{.type = Node::Type::kSequence};
    while (!at_end() && pattern_[at_] != '|' && pattern_[at_] != ')') {
      std::optional<Node> atom = parse_atom(depth);
      if (!atom) continue;
      // Nothing stays nothing, however often: (){1000} in itself again and again would take forever to write out.
      Node repeated = parse_repeats(*std::move(atom));
      if (!is_nothing(repeated)) sequence.children.push_back(std::move(repeated));
    }
    return sequence;
  }

  static bool is_nothing(const Node& node) {
    const bool is_plain = node.type == Node::Type::kSequence || node.type == Node::Type::kRepeat;
    return is_plain && std::ranges::all_of(node.children, is_nothing);
  }

  Node parse_repeats(Node atom) {
    for (int repeats = 0;; ++repeats) {
      Node repeat{.type = Node::Type::kRepeat};
      bool is_interval = false;
      if (take("*")) {
        repeat.least = 0, repeat.most = kUnlimitedRepeats;
      } else if (take("+")) {
        repeat.least = 1, repeat.most = kUnlimitedRepeats;
      } else if (take("?")) {
        repeat.least = 0, repeat.most = 1;
      } else if (!(is_interval = parse_interval(repeat.least, repeat.most))) {
        return atom;
      }
      if (repeats >= kDeepest) refuse("too many repeats of repeats");
      if (take("?")) {
        repeat.greed = Node::Greed::kLazy;
      } else if (!is_interval && take("+")) {  // behind {n,m} a + repeats once more, in Oniguruma
        repeat.greed = Node::Greed::kPossessive;
      }
      repeat.children.push_back(std::move(atom));
      atom = std::move(repeat);
    }
  }

  // {n} {n,} {n,m} {,m}; any other { is a character.
  bool parse_interval(uint32_t& least, uint32_t& most) {
    const size_t begin = at_;
    if (!take("{")) return false;
    const auto low = parse_number();
    const bool has_comma = take(",");
    const auto high = has_comma ? parse_number() : low;
    if (!take("}") || (!low && !high)) {
      at_ = begin;
      return false;
    }
    least = low.value_or(0);
    most = high.value_or(kUnlimitedRepeats);
    if (least > kMostRepeats || (most != kUnlimitedRepeats && most > kMostRepeats) || least > most) {
      refuse("a repeat count that is too large or whose bounds are reversed");
    }
    return true;
  }

  std::optional<uint32_t> parse_number() {
    std::optional<uint32_t> number;
    while (!at_end() && pattern_[at_] >= '0' && pattern_[at_] <= '9') {
      number = std::min<uint32_t>(number.value_or(0) * 10 + static_cast<uint32_t>(pattern_[at_++] - '0'), 1000000);
    }
    return number;
  }

  // Nothing for what only changes a setting, such as (?i).
  std::optional<Node> parse_atom(int depth) {
    if (take("(")) return parse_group(depth);
    if (take("[")) {
      nested_sets_ = 0;
      return class_node(parse_set(depth));
    }
    if (take("^")) return assertion_node(Kind::kLineBegin);
    if (take("$")) return assertion_node(Kind::kLineEnd);
    if (take(".")) {
      CharacterClass any;
      any.items.push_back({.first = '\n', .last = '\n'});
      any.negated = true;
      return class_node(std::move(any));
    }
    if (starts_with("*") || starts_with("+") || starts_with("?")) refuse("a repeat of nothing");
    if (starts_with("\\")) {
      if (take("\\A")) return assertion_node(Kind::kTextBegin);
      if (take("\\z")) return assertion_node(Kind::kTextEnd);
      if (take("\\Z")) return assertion_node(Kind::kTextEndOrNewline);
      if (take("\\b")) return assertion_node(Kind::kWordBoundary);
      if (take("\\B")) return assertion_node(Kind::kWordBoundary, true);
      CharacterClass escaped;
      escaped.items.push_back(parse_escape(false));
      return class_node(std::move(escaped));
    }
    CharacterClass literal;
    const uint32_t character = take_character();
    literal.items.push_back({.first = character, .last = character});
    return class_node(std::move(literal));
  }

  std::optional<Node> parse_group(int depth) {
    Node group{.type = Node::Type::kGroup};
    const bool outer_ignores_case = ignores_case_;
    if (take("?:")) {
      group.type = Node::Type::kSequence;
    } else if (take("?=")) {
      group.assertion = Kind::kLookahead;
    } else if (take("?!")) {
      group.assertion = Kind::kLookahead, group.negated = true;
    } else if (take("?<=")) {
      group.assertion = Kind::kLookbehind;
    } else if (take("?<!")) {
      group.assertion = Kind::kLookbehind, group.negated = true;
    } else if (take("?>")) {
      group.assertion = Kind::kAtomic;
    } else if (take("?i:")) {
      group.type = Node::Type::kSequence;
      ignores_case_ = true;
    } else if (take("?i)")) {  // to the end of the group around it
      ignores_case_ = true;
      return std::nullopt;
    } else if (starts_with("?")) {
      refuse("a group of an unknown kind");
    } else {
      group.type = Node::Type::kSequence;  // what it matches is never asked for
    }
    group.children.push_back(parse_alternatives(depth + 1));
    if (!take(")")) refuse("a group without its ')'");
    ignores_case_ = outer_ignores_case;
    return group;
  }

  // What stands behind '['.
  CharacterClass parse_set(int depth) {
    if (depth > kDeepest) refuse("sets nested too deep");
    CharacterClass set;
    const bool negated = take("^");
    bool is_first = true;
    while (is_first || !starts_with("]")) {
      if (at_end()) refuse("a set without its ']'");
      if (starts_with("[:")) refuse("a POSIX bracket");
      if (take("&&")) {
        // What is left of the set is the other operand.
        CharacterClass other = parse_set_rest(depth);
        set.also_in = std::make_shared<const CharacterClass>(std::move(other));
        set.negated = negated;
        return set;
      }
      set.items.push_back(parse_set_item(depth));
      is_first = false;
    }
    take("]");
    set.negated = negated;
    return set;
  }

  CharacterClass parse_set_rest(int depth) {
    CharacterClass set;
    while (!take("]")) {
      if (at_end()) refuse("a set without its ']'");
      if (starts_with("&&")) refuse("more than one && in a set");
      set.items.push_back(parse_set_item(depth));
    }
    set.ignores_case = ignores_case_;
    set.finish();
    return set;
  }

  Item parse_set_item(int depth) {
    if (take("[")) {
      if (++nested_sets_ > kMostNestedSets) refuse("too many sets inside a set");
      CharacterClass nested = parse_set(depth + 1);
      nested.ignores_case = ignores_case_;
      nested.finish();
      return {.kind = CharacterClass::Kind::kClass,
              .nested = std::make_shared<const CharacterClass>(std::move(nested))};
    }
    Item item = parse_set_character();
    if (item.kind != CharacterClass::Kind::kRange || item.first != item.last || item.negated) return item;
    if (!starts_with("-") || starts_with("-]")) return item;
    take("-");
    const Item last = parse_set_character();
    if (last.kind != CharacterClass::Kind::kRange || last.last < item.first) refuse("a reversed range");
    item.last = last.last;
    return item;
  }

  Item parse_set_character() {
    if (starts_with("\\")) return parse_escape(true);
    const uint32_t character = take_character();
    return {.first = character, .last = character};
  }

  // At a backslash.
  Item parse_escape(bool in_set) {
    take("\\");
    const uint32_t character = take_character();
    const auto one = [](uint32_t c) { return Item{.first = c, .last = c}; };
    const bool is_upper = character >= 'A' && character <= 'Z';
    switch (character) {
      case 'n': return one('\n');
      case 'r': return one('\r');
      case 't': return one('\t');
      case 'f': return one('\f');
      case 'v': return one('\v');
      case 'a': return one('\a');
      case 'e': return one(0x1B);
      case 's':
      case 'S': return {.kind = CharacterClass::Kind::kSpace, .negated = is_upper};
      case 'w':
      case 'W':
        return {.kind = in_set ? CharacterClass::Kind::kSetWord : CharacterClass::Kind::kWord, .negated = is_upper};
      case 'd':
      case 'D':
        return {.kind = CharacterClass::Kind::kCategories,
                .negated = is_upper,
                .categories = category_set(GeneralCategory::Nd)};
      case 'h':
      case 'H': return hexadecimal_digits(is_upper);
      case 'p':
      case 'P': return parse_property(is_upper);
      case 'x': return one(take("{") ? parse_hexadecimal(1, 8, true) : parse_hexadecimal(1, 2, false));
      case 'u': return one(parse_hexadecimal(4, 4, false));
      default: break;
    }
    const bool is_plain = character >= 128 || !((character >= '0' && character <= '9') || is_upper ||
                                                (character >= 'a' && character <= 'z'));
    if (!is_plain) refuse(fmt::format("the escape \\{}", static_cast<char>(character)));
    return one(character);
  }

  static Item hexadecimal_digits(bool negated) {
    CharacterClass digits;
    digits.items = {{.first = '0', .last = '9'}, {.first = 'a', .last = 'f'}, {.first = 'A', .last = 'F'}};
    digits.finish();
    return {.kind = CharacterClass::Kind::kClass,
            .negated = negated,
            .nested = std::make_shared<const CharacterClass>(std::move(digits))};
  }

  uint32_t parse_hexadecimal(size_t least, size_t most, bool braced) {
    uint32_t value = 0;
    size_t digits = 0;
    for (; digits < most && !at_end(); ++digits, ++at_) {
      const char c = pattern_[at_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) break;
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    if (digits < least || value >= kCodePoints || (braced && !take("}"))) refuse("a bad hexadecimal number");
    return value;
  }

  // \p{L}, \p{Lu}, \p{^L}, \pL, and a few names.
  Item parse_property(bool negated) {
    std::string name;
    if (take("{")) {
      if (take("^")) negated = !negated;
      while (!at_end() && pattern_[at_] != '}') name += pattern_[at_++];
      if (!take("}")) refuse("a property without its '}'");
    } else {
      name = std::string(1, static_cast<char>(take_character() & 0x7F));
    }
    if (name == "Alnum" || name == "Any" || name == "Han") refuse(fmt::format("the property {}", name));
    for (const auto& [known, short_name] : {std::pair{"Letter", "L"}, std::pair{"Number", "N"}, std::pair{"Mark", "M"},
                                            std::pair{"Punctuation", "P"}, std::pair{"Symbol", "S"}}) {
      if (name == known) name = short_name;
    }
    CategorySet categories = 0;
    for (int i = 0; i < kGeneralCategories; ++i) {
      if (kCategoryNames[i] == name || (name.size() == 1 && kCategoryNames[i][0] == name[0])) categories |= 1u << i;
    }
    if (categories == 0) refuse(fmt::format("the property \"{}\"", printable(name)));
    return {.kind = CharacterClass::Kind::kCategories, .negated = negated, .categories = categories};
  }

  Node class_node(CharacterClass character_class) {
    character_class.ignores_case = ignores_case_;
    character_class.finish();
    classes_.push_back(std::move(character_class));
    return {.type = Node::Type::kClass, .character_class = static_cast<uint32_t>(classes_.size() - 1)};
  }

  static Node assertion_node(Kind kind, bool negated = false) {
    return {.type = Node::Type::kAssertion, .assertion = kind, .negated = negated};
  }

  std::string_view pattern_;
  const std::string& place_;
  std::vector<CharacterClass>& classes_;
  size_t at_ = 0;
  bool ignores_case_ = false;
  size_t nested_sets_ = 0;  // of the set being read
};

}  // namespace

RegexNode parse_regex(std::string_view pattern, const std::string& place, std::vector<CharacterClass>& classes) {
  return Parser(pattern, place, classes).parse();
}

}  // namespace brisk
