// Finds added tokens in a text before it is normalized or split: special tokens such as <|endoftext|>, and words that a
// user added to a vocabulary.
//
//   AddedTokenFinder finder({{"<|endoftext|>", token}});
//   finder.split("a<|endoftext|>b", [](std::string_view text) {...}, [](TokenId id) {...});    // "a", token, "b"
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/unicode.h"
#include "text/tokenizer.h"

namespace brisk {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = true;
  bool normalized = false;   // looked for in the normalized text
  bool single_word = false;  // only where no letter or number stands next to it
  bool lstrip = false;       // takes the white space before it, too
  bool rstrip = false;       // and behind it
  bool operator==(const AddedToken&) const = default;
};

class AddedTokenFinder {
 public:
  struct Pattern {
    std::string text;
    AddedToken token;
  };

  AddedTokenFinder() = default;
  explicit AddedTokenFinder(std::vector<Pattern> patterns);  // of two with the same text the first counts

  bool finds_nothing() const { return patterns_.empty(); }

  // Calls on_text(begin, end) and on_token(id) from left to right; of the tokens that begin at one place, the longest.
  template <typename OnText, typename OnToken>
  void split(std::string_view text, const OnText& on_text, const OnToken& on_token) const {
    size_t done = 0;
    for (size_t at = next_candidate(text, 0); at < text.size();) {
      const Pattern* pattern = longest_at(text, at);
      if (!pattern) {
        at = next_candidate(text, at + 1);
        continue;
      }
      size_t begin = at, end = at + pattern->text.size();
      at = next_candidate(text, end);
      if (!accept(text, pattern->token, done, begin, end)) continue;
      if (done < begin) on_text(done, begin);
      on_token(pattern->token.id);
      done = end;
      at = std::max(at, next_candidate(text, done));
    }
    if (done < text.size()) on_text(done, text.size());
  }

 private:
  size_t next_candidate(std::string_view text, size_t from) const;
  const Pattern* longest_at(std::string_view text, size_t at) const;
  // Whether the token counts there; moves begin and end over white space.
  static bool accept(std::string_view text, const AddedToken& token, size_t done, size_t& begin, size_t& end);

  std::vector<Pattern> patterns_;  // sorted by text
  std::array<bool, 256> begins_{};
  int only_first_byte_ = -1;  // where all begin with the same: memchr is faster
};

}  // namespace brisk
