// The regular expressions of tokenizer files, over UTF-8 with the classes of Unicode.
//
//   const Regex digits(R"(\p{N}{1,3}|\s+(?!\S))", "tokenizer.json: pre_tokenizer");   // UserError if unsupported
//   if (auto match = digits.find(text, 0)) ... text.substr(match->begin, match->end - match->begin)
//
// Supported: literals, escapes, . [...] with ranges, negation, nesting and &&, \p{...} of general categories, \s \d \w \h
// and their opposites, (?:...) (...) (?i) (?=) (?!) (?<=) (?<!) (?>), | * + ? {n,m}, lazy and possessive forms, ^ $ \A
// \z \Z \b \B. The meaning is Oniguruma's, which the tokenizers library uses: ^ and $ are the ends of lines, and of
// alternatives the first that leads to a match wins. One match takes time linear in the text: once backtracking becomes
// frequent, a state is tried at most once at each position.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace brisk {

struct RegexProgram;

class Regex {
 public:
  struct Match {
    size_t begin, end;
  };

  // `place` is named in errors.
  Regex(std::string_view pattern, const std::string& place);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // The first match that begins at or after `from`.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  std::unique_ptr<const RegexProgram> program_;
};

// The matches from left to right, as Oniguruma's find_iter gives them: none overlaps the one before, and none is empty
// at the end of the one before.
template <typename Visit>
void for_each_match(const Regex& regex, std::string_view text, const Visit& visit);

size_t next_character(std::string_view text, size_t at);      // at < text.size()
size_t previous_character(std::string_view text, size_t at);  // at > 0

template <typename Visit>
void for_each_match(const Regex& regex, std::string_view text, const Visit& visit) {
  std::optional<size_t> last_end;
  for (size_t from = 0; from <= text.size();) {
    const auto match = regex.find(text, from);
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
