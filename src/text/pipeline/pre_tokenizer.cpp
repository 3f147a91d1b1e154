#include "text/pipeline/pre_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/unicode.h"
#include "text/pipeline/json_fields.h"
#include "text/pipeline/replace.h"
#include "text/regex/regex.h"
#include "text/unicode/byte_alphabet.h"

namespace brisk {

namespace {

constexpr const char* kKnownPreTokenizers =
    "ByteLevel, Split, Whitespace, WhitespaceSplit, Metaspace, Digits, Punctuation, BertPreTokenizer, "
    "CharDelimiterSplit, Sequence";

// What becomes of the places where a pattern matches.
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

Behavior behavior_from(const nlohmann::json& component, const std::string& place) {
  const std::string name = json_text(component, "behavior", place);
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  user_error(
      "{}: \"behavior\": found \"{}\", expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous",
      place, name);
}

struct Span {
  size_t begin, end;
  bool matches;
};

// Takes the matches of a pattern from left to right and gives the pieces of the text to `visit`, joined as `behavior`
// says. At most one piece waits, so that a long text takes no memory.
template <typename Visit>
class Pieces {
 public:
  Pieces(size_t text_size, Behavior behavior, bool inverted, const Visit& visit)
      : text_size_(text_size), behavior_(behavior), inverted_(inverted), visit_(visit) {}

  void add_match(size_t begin, size_t end) {
    if (begin != done_) add({done_, begin, inverted_});
    add({begin, end, !inverted_});
    done_ = end;
  }

  void finish() {
    if (done_ != text_size_) add({done_, text_size_, inverted_});
    if (waiting_) visit_(waiting_->begin, waiting_->end);
  }

 private:
  void add(const Span& span) {
    if (behavior_ == Behavior::kRemoved) {
      if (!span.matches) visit_(span.begin, span.end);
      return;
    }
    if (waiting_ && joins(*waiting_, span)) {
      waiting_ = {waiting_->begin, span.end, span.matches};
      return;
    }
    if (waiting_) visit_(waiting_->begin, waiting_->end);
    waiting_ = span;
  }

  bool joins(const Span& before, const Span& after) const {
    switch (behavior_) {
      case Behavior::kMergedWithPrevious: return !before.matches && after.matches;
      case Behavior::kMergedWithNext: return before.matches && !after.matches;
      case Behavior::kContiguous: return before.matches == after.matches;
      default: return false;
    }
  }

  size_t text_size_, done_ = 0;
  Behavior behavior_;
  bool inverted_;
  const Visit& visit_;
  std::optional<Span> waiting_;
};

enum class Prepend { kNever, kFirst, kAlways };

bool is_number(uint32_t c) { return is_in(c, kNumbers); }

}  // namespace

struct PreTokenizer::Step {
  enum class Kind { kByteLevel, kWords, kRegex, kLiteral, kCharacters, kRustWords, kMetaspace };
  Kind kind;
  Behavior behavior = Behavior::kIsolated;
  bool inverted = false;
  bool uses_words = true;                       // kByteLevel
  bool adds_space = false;                      // kByteLevel
  WordPattern pattern = WordPattern::kGpt2;     // kByteLevel, kWords
  std::optional<Regex> regex = std::nullopt;    // kRegex
  std::string literal = {};                     // kLiteral; kMetaspace: what stands for a space
  std::function<bool(uint32_t)> is_match = {};  // kCharacters: each of them is a match of its own
  Prepend prepend = Prepend::kNever;            // kMetaspace
  bool splits = true;                           // kMetaspace

  template <typename Visit>
  void for_each_piece(std::string_view text, const Visit& visit) const;
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::~PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;

PreTokenizer::PreTokenizer(const nlohmann::json& component, const std::string& place) {
  if (component.is_null()) return;
  add(component, place, 0);
  // ByteLevel without words of its own does nothing if it stands last: pieces are bytes already.
  const auto is_words = [](const Step& step) { return step.kind == Step::Kind::kWords; };
  const auto is_byte_level = [](const Step& step) { return step.kind == Step::Kind::kByteLevel && !step.adds_space; };
  if (steps_.size() == 1 && is_byte_level(steps_[0]) && steps_[0].uses_words) only_words_ = WordPattern::kGpt2;
  if (steps_.size() == 1 && is_words(steps_[0])) only_words_ = steps_[0].pattern;
  if (steps_.size() == 2 && is_words(steps_[0]) && is_byte_level(steps_[1]) && !steps_[1].uses_words) {
    only_words_ = steps_[0].pattern;
  }
}

bool PreTokenizer::gives_bytes() const { return !steps_.empty() && steps_.back().kind == Step::Kind::kByteLevel; }

void PreTokenizer::add(const nlohmann::json& component, const std::string& place, int depth) {
  using Kind = Step::Kind;
  const std::string type = component_type(component, place);
  const auto add_characters = [&](std::function<bool(uint32_t)> is_match, Behavior behavior) {
    steps_.push_back({.kind = Kind::kCharacters, .behavior = behavior, .is_match = std::move(is_match)});
  };
  if (type == "Sequence") {
    if (depth >= kDeepestSequence)
      user_error("{}: sequences are nested more than {} levels deep", place, kDeepestSequence);
    for (const nlohmann::json& part : json_array(component, "pretokenizers", place)) add(part, place, depth + 1);
  } else if (type == "ByteLevel") {
    const bool is_second = std::ranges::any_of(steps_, [](const Step& s) { return s.kind == Kind::kByteLevel; });
    if (is_second) user_error("{}: ByteLevel occurs twice in it; expected it once: use another tokenizer", place);
    steps_.push_back({.kind = Kind::kByteLevel,
                      .uses_words = json_flag(component, "use_regex", place, true),
                      .adds_space = json_flag(component, "add_prefix_space", place, true)});
  } else if (type == "Split") {
    add_split(component, place);
  } else if (type == "Whitespace") {
    steps_.push_back({.kind = Kind::kRustWords, .behavior = Behavior::kRemoved, .inverted = true});
  } else if (type == "WhitespaceSplit") {
    add_characters(is_white_space, Behavior::kRemoved);
  } else if (type == "BertPreTokenizer") {
    add_characters(is_white_space, Behavior::kRemoved);
    add_characters(is_library_punctuation, Behavior::kIsolated);
  } else if (type == "Punctuation") {
    add_characters(is_library_punctuation,
                   component.contains("behavior") ? behavior_from(component, place) : Behavior::kIsolated);
  } else if (type == "Digits") {
    const bool apart = json_flag(component, "individual_digits", place, false);
    add_characters(is_number, apart ? Behavior::kIsolated : Behavior::kContiguous);
  } else if (type == "CharDelimiterSplit") {
    const std::string delimiter = json_text(component, "delimiter", place);
    if (delimiter.empty() || next_character(delimiter, 0) != delimiter.size()) {
      user_error("{}: \"delimiter\": found \"{}\", expected one character", place, delimiter);
    }
    add_characters([wanted = decode_utf8(delimiter, 0).value](uint32_t c) { return c == wanted; }, Behavior::kRemoved);
  } else if (type == "Metaspace") {
    Step step{.kind = Kind::kMetaspace, .literal = json_text(component, "replacement", place)};
    if (step.literal.empty() || next_character(step.literal, 0) != step.literal.size()) {
      user_error("{}: \"replacement\": found \"{}\", expected one character", place, step.literal);
    }
    step.splits = json_flag(component, "split", place, true);
    const std::string scheme =
        json_text_or_null(component, "prepend_scheme", place)
            .value_or(json_flag(component, "add_prefix_space", place, true) ? "always" : "never");
    if (scheme != "always" && scheme != "never" && scheme != "first") {
      user_error("{}: \"prepend_scheme\": found \"{}\", expected always, never or first", place, scheme);
    }
    step.prepend = scheme == "always" ? Prepend::kAlways : scheme == "first" ? Prepend::kFirst : Prepend::kNever;
    steps_.push_back(std::move(step));
  } else {
    refuse_component(place, type, kKnownPreTokenizers);
  }
  if (steps_.size() > kMostSteps) user_error("{}: more than {} steps", place, kMostSteps);
}

void PreTokenizer::add_split(const nlohmann::json& component, const std::string& place) {
  const TextPattern pattern = json_pattern(component, place);
  const Behavior behavior = behavior_from(component, place);
  const bool inverted = json_flag(component, "invert", place, false);
  if (!pattern.is_regex) {
    steps_.push_back(
        {.kind = Step::Kind::kLiteral, .behavior = behavior, .inverted = inverted, .literal = pattern.text});
    return;
  }
  // These patterns match everything, so that what is found is what there is, if what does not match is removed.
  const auto known = known_word_pattern(pattern.text);
  const bool keeps_matches = behavior == (inverted ? Behavior::kRemoved : Behavior::kIsolated);
  if (known && (keeps_matches || behavior == Behavior::kIsolated)) {
    steps_.push_back({.kind = Step::Kind::kWords, .pattern = *known});
    return;
  }
  steps_.push_back({.kind = Step::Kind::kRegex,
                    .behavior = behavior,
                    .inverted = inverted,
                    .regex = std::optional<Regex>(std::in_place, pattern.text, place)});
}

template <typename Visit>
void PreTokenizer::Step::for_each_piece(std::string_view text, const Visit& visit) const {
  Pieces<Visit> pieces(text.size(), behavior, inverted, visit);
  switch (kind) {
    case Kind::kRegex:
      for_each_match(*regex, text, [&](const Regex::Match& match) { pieces.add_match(match.begin, match.end); });
      break;
    case Kind::kLiteral:
      if (literal.empty()) break;
      for (size_t at = text.find(literal); at != std::string_view::npos; at = text.find(literal, at + literal.size())) {
        pieces.add_match(at, at + literal.size());
      }
      break;
    case Kind::kRustWords: {  // \w+|[^\w\s]+
      enum class Class { kSpace, kWord, kOther };
      const auto class_of = [](uint32_t c) {
        if (is_word_character(c, WordRule::kRust)) return Class::kWord;
        return is_white_space(c) ? Class::kSpace : Class::kOther;
      };
      for (size_t begin = 0; begin < text.size();) {
        const Class first = class_of(decode_utf8(text, begin).value);
        size_t end = next_character(text, begin);
        while (end < text.size() && class_of(decode_utf8(text, end).value) == first) end = next_character(text, end);
        if (first != Class::kSpace) pieces.add_match(begin, end);
        begin = end;
      }
      break;
    }
    default:
      for (size_t at = 0; at < text.size();) {
        const CodePoint character = decode_utf8(text, at);
        if (is_match(character.value)) pieces.add_match(at, at + character.length);
        at += character.length;
      }
  }
  pieces.finish();
}

void PreTokenizer::split_by_steps(std::string_view text, bool opens_text, const Visitor& visit) const {
  run(0, text, opens_text, visit);
}

void PreTokenizer::run(size_t index, std::string_view text, bool opens_text, const Visitor& visit) const {
  if (text.empty()) return;
  if (index == steps_.size()) return visit(text);
  const Step& step = steps_[index];
  const auto go_on = [&](size_t begin, size_t end) {
    run(index + 1, text.substr(begin, end - begin), opens_text && begin == 0, visit);
  };
  const auto words = [&](const auto& found) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = word_end(text, begin, step.pattern);
      found(begin, end);
      begin = end;
    }
  };
  std::string changed;
  switch (step.kind) {
    case Step::Kind::kWords: return words(go_on);
    case Step::Kind::kByteLevel: {
      if (step.adds_space && !text.starts_with(' ')) text = changed = " " + std::string(text);
      const bool is_last = index + 1 == steps_.size();
      const auto found = [&](size_t begin, size_t end) {
        if (is_last) return visit(text.substr(begin, end - begin));
        run(index + 1, byte_alphabet_encode(text.substr(begin, end - begin)), opens_text && begin == 0, visit);
      };
      if (!step.uses_words) return found(0, text.size());
      return words(found);
    }
    case Step::Kind::kMetaspace: {
      const bool may_prepend = step.prepend == Prepend::kAlways || (step.prepend == Prepend::kFirst && opens_text);
      for (const char c : text) {
        if (c == ' ') {
          changed += step.literal;
        } else {
          changed += c;
        }
      }
      if (may_prepend && !changed.starts_with(step.literal)) changed.insert(0, step.literal);
      text = changed;
      if (!step.splits) return go_on(0, text.size());
      // Before each space, though not between spaces: a space is merged with what follows, a space stands alone.
      Pieces pieces(text.size(), Behavior::kMergedWithNext, false, go_on);
      for (size_t at = text.find(step.literal); at != std::string_view::npos;
           at = text.find(step.literal, at + step.literal.size())) {
        pieces.add_match(at, at + step.literal.size());
      }
      return pieces.finish();
    }
    default: step.for_each_piece(text, go_on);
  }
}

}  // namespace brisk
