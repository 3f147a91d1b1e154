// The regular expressions of tokenizer files, over UTF-8 with the classes of Unicode.
//
//   const Regex digits(R"(\p{N}{1,3}|\s+(?!\S))", "tokenizer.json: pre_tokenizer");   // UserError if unsupported
//   if (auto match = digits.find(text, 0)) ... text.substr(match->begin, match->end - match->begin)
//
// Supported: literals, escapes, . [...] with ranges, negation, nesting and &&, \p{...} of general categories, \s \d \w \h
// and their opposites, (?:...) (...) (?i) (?=) (?!) (?<=) (?<!) (?>), | * + ? {n,m}, lazy and possessive forms, ^ $ \A
// \z \Z \b \B. The meaning is Oniguruma's, which the tokenizers library uses: ^ and $ are the ends of lines, and of
// alternatives the first that leads to a match wins; a loop ends with an iteration that matched nothing.
//
// All matches in a text together take time linear in it (regex_search.h). A pattern is refused whose program, its counted
// repeats written out, has more than 1,000 instructions: those and the length of the text are what a search costs.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "text/regex/regex_search.h"

namespace brisk {

class Regex {
 public:
  using Match = RegexMatch;

  // `place` is named in errors.
  Regex(std::string_view pattern, const std::string& place);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // The first match that begins at or after `from`. For all matches of a text: for_each_match.
  std::optional<Match> find(std::string_view text, size_t from) const {
    return RegexSearch(*program_, text).find(from);
  }

  const RegexProgram& program() const { return *program_; }

 private:
  std::unique_ptr<const RegexProgram> program_;
};

// The matches from left to right, as Oniguruma's find_iter gives them: none overlaps the one before, and none is empty
// at the end of the one before.
template <typename Visit>
void for_each_match(const Regex& regex, std::string_view text, const Visit& visit);
template <typename Visit>
void for_each_match(RegexSearch& search, std::string_view text, const Visit& visit);

size_t next_character(std::string_view text, size_t at);      // at < text.size()
size_t previous_character(std::string_view text, size_t at);  // at > 0

template <typename Visit>
void for_each_match(const Regex& regex, std::string_view text, const Visit& visit) {
  RegexSearch search(regex.program(), text);
  for_each_match(search, text, visit);
}

template <typename Visit>
void for_each_match(RegexSearch& search, std::string_view text, const Visit& visit) {
  std::optional<size_t> last_end;
  for (size_t from = 0; from <= text.size();) {
    const auto match = search.find(from);
    if (!match) return;
    if (match->begin == match->end && last_end == match->end) {
      if (from >= text.size()) return;
      from = next_character(text, from);
      continue;
    }
    visit(*match);
    last_end = from = match->end;
  }
}

}  // namespace brisk
