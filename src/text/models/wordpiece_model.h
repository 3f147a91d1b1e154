// The WordPiece "model" of a tokenizer.json (BERT): a word becomes the longest token it begins with, then the longest "##"
// token that continues it, and so on; a word that cannot be covered this way becomes the unknown token.
//
//   WordPieceModel model(std::move(parts), "tokenizer.json: model");
//   model.encode("singing", ids);         // "sing" "##ing", appended
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/models/byte_trie.h"
#include "text/tokenizer.h"

namespace brisk {

struct WordPieceModelParts {
  std::vector<std::string> tokens;  // by id; empty if no token has the id; none occurs twice
  std::string unknown_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  int64_t most_characters = 100;  // a longer word is unknown
};

class WordPieceModel {
 public:
  // A vocabulary without the unknown token is a UserError that names `place`.
  WordPieceModel(WordPieceModelParts parts, const std::string& place);
  WordPieceModel(const WordPieceModel&) = delete;
  WordPieceModel& operator=(const WordPieceModel&) = delete;

  // From the cache of words, where it is there.
  void encode(std::string_view word, std::vector<TokenId>& out) const;
  void encode_uncached(std::string_view word, std::vector<TokenId>& out) const;

  const WordPieceModelParts& parts() const { return parts_; }

 private:
  bool is_too_long(std::string_view word) const;

  WordPieceModelParts parts_;
  ByteTrie trie_;
  std::optional<uint32_t> continuation_;  // where tokens go on from the prefix; nothing if no token has it
  TokenId unknown_id_ = -1;
  uint32_t serial_;  // for the caches of words that threads keep
};

}  // namespace brisk
