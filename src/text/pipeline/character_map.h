// SentencePiece's precompiled character map ("precompiled_charsmap"): what characters and short sequences of them become
// before text is cut, nmt_nfkc for example. It is a double-array trie (darts-clone) and the texts that it points to.
//
//   const CharacterMap map(bytes, "tokenizer.model: normalizer");      // UserError if damaged
//   map.longest("ﬁne")              // {3 bytes, "fi"}; of length 0 where no rule fits
//   map.normalize_graphemes(text)   // as the tokenizers library applies it, which differs in places
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brisk {

class CharacterMap {
 public:
  CharacterMap() = default;  // without a rule
  CharacterMap(std::string bytes, const std::string& place);

  struct Rule {
    size_t length = 0;  // of what it replaces; 0: there is none
    std::string_view text;
  };
  // Of the rules for a beginning of `text` the one for the longest, as SentencePiece takes it, or the shortest.
  Rule longest(std::string_view text) const { return find(text, false); }
  Rule shortest(std::string_view text) const { return find(text, true); }

  // Each user-perceived character (text/unicode/graphemes.h) of less than 6 bytes whose beginning has a rule becomes what
  // that rule says, as a whole; of the others, each character does. What is not UTF-8 stays.
  std::string normalize_graphemes(std::string_view text) const;

  const std::string& bytes() const { return bytes_; }

 private:
  Rule find(std::string_view text, bool first) const;

  std::string bytes_;
  std::vector<uint32_t> units_;  // of the trie
  size_t texts_begin_ = 0;       // in bytes_
};

}  // namespace brisk
