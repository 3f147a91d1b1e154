#include "text/pipeline/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "text/regex/regex.h"

namespace brisk {

AddedTokenFinder::AddedTokenFinder(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {
  std::erase_if(patterns_, [](const Pattern& pattern) { return pattern.text.empty(); });
  std::ranges::stable_sort(patterns_, {}, &Pattern::text);
  const auto is_same = [](const Pattern& a, const Pattern& b) { return a.text == b.text; };
  patterns_.erase(std::unique(patterns_.begin(), patterns_.end(), is_same), patterns_.end());
  for (const Pattern& pattern : patterns_) begins_[static_cast<unsigned char>(pattern.text[0])] = true;
  if (std::ranges::count(begins_, true) == 1) only_first_byte_ = static_cast<unsigned char>(patterns_[0].text[0]);
}

size_t AddedTokenFinder::next_candidate(std::string_view text, size_t from) const {
  if (from >= text.size()) return text.size();
  if (only_first_byte_ >= 0) {
    const void* found = std::memchr(text.data() + from, only_first_byte_, text.size() - from);
    return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : text.size();
  }
  while (from < text.size() && !begins_[static_cast<unsigned char>(text[from])]) ++from;
  return from;
}

const AddedTokenFinder::Pattern* AddedTokenFinder::longest_at(std::string_view text, size_t at) const {
  // The patterns that agree with the text in their first bytes are neighbours: each byte narrows them down.
  auto begin = patterns_.begin(), end = patterns_.end();
  const Pattern* longest = nullptr;
  for (size_t depth = 0; begin != end && at + depth < text.size(); ++depth) {
    const auto byte = static_cast<unsigned char>(text[at + depth]);
    const auto byte_of = [&](const Pattern& p) {  // those that end here come first
      return p.text.size() > depth ? static_cast<int>(static_cast<unsigned char>(p.text[depth])) : -1;
    };
    std::tie(begin, end) = std::pair(std::ranges::lower_bound(begin, end, static_cast<int>(byte), {}, byte_of),
                                     std::ranges::upper_bound(begin, end, static_cast<int>(byte), {}, byte_of));
    if (begin != end && begin->text.size() == depth + 1) longest = &*begin;
  }
  return longest;
}

bool AddedTokenFinder::accept(std::string_view text, const AddedToken& token, size_t done, size_t& begin, size_t& end) {
  const auto character = [&](size_t at) { return decode_utf8(text, at).value; };
  if (begin < done) return false;  // the white space behind the token before was taken
  if (token.single_word) {
    const auto is_word = [&](size_t at) { return is_word_character(character(at), WordRule::kRust); };
    if (begin > 0 && is_word(previous_character(text, begin))) return false;
    if (end < text.size() && is_word(end)) return false;
  }
  if (token.lstrip) {
    while (begin > done) {
      const size_t previous = previous_character(text, begin);
      if (!is_white_space(character(previous))) break;
      begin = previous;
    }
  }
  if (token.rstrip) {
    while (end < text.size() && is_white_space(character(end))) end = next_character(text, end);
  }
  return true;
}

}  // namespace brisk
