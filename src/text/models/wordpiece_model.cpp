#include "text/models/wordpiece_model.h"

#include "base/error.h"
#include "base/text/unicode.h"
#include "text/models/word_cache.h"

namespace brisk {

WordPieceModel::WordPieceModel(WordPieceModelParts parts, const std::string& place)
    : parts_(std::move(parts)), serial_(WordCache::next_serial()) {
  for (size_t id = 0; id < parts_.tokens.size(); ++id) {
    if (parts_.tokens[id].empty()) continue;
    trie_.insert(parts_.tokens[id], static_cast<TokenId>(id));
    if (parts_.tokens[id] == parts_.unknown_token) unknown_id_ = static_cast<TokenId>(id);
  }
  continuation_ = trie_.find(parts_.continuing_subword_prefix);
  if (unknown_id_ < 0) {
    user_error(
        "{}: the unknown token is \"{}\", which is not in the vocabulary, so words without tokens cannot be "
        "encoded: copy the file again, or name another as \"unk_token\"",
        place, parts_.unknown_token);
  }
}

void WordPieceModel::encode(std::string_view word, std::vector<TokenId>& out) const {
  WordCache::of_this_thread().encode(word, serial_, out, [&] { encode_uncached(word, out); });
}

bool WordPieceModel::is_too_long(std::string_view word) const {
  if (static_cast<int64_t>(word.size()) <= parts_.most_characters) return false;
  int64_t characters = 0;
  for (size_t at = 0; at < word.size(); at += decode_utf8(word, at).length) ++characters;
  return characters > parts_.most_characters;
}

void WordPieceModel::encode_uncached(std::string_view word, std::vector<TokenId>& out) const {
  if (is_too_long(word)) return out.push_back(unknown_id_);
  const size_t size_before = out.size();
  for (size_t begin = 0; begin < word.size();) {
    // Tokens and words are UTF-8, so a token that the bytes agree with ends between characters.
    TokenId longest = -1;
    size_t longest_end = begin;
    if (begin == 0 || continuation_) {
      uint32_t node = begin == 0 ? ByteTrie::kRoot : *continuation_;
      for (size_t at = begin; at < word.size();) {
        node = trie_.child(node, word[at]);
        if (node == ByteTrie::kNone) break;
        ++at;
        if (trie_.id_at(node) >= 0) {
          longest = trie_.id_at(node);
          longest_end = at;
        }
      }
    }
    if (longest < 0) {
      out.resize(size_before);
      return out.push_back(unknown_id_);
    }
    out.push_back(longest);
    begin = longest_end;
  }
}

}  // namespace brisk
