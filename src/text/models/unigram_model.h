// The Unigram "model" of SentencePiece and of a tokenizer.json (T5, XLM-R, Marian): every token has a log-probability, and a
// text becomes the tokens whose sum is largest (Viterbi). A character without a token is unknown, at the cost of the
// rarest token and 10 more.
//
//   UnigramModel model(std::move(parts), "tokenizer.json: model");
//   model.encode("▁the▁cat", ids);         // appends
//
// SentencePiece adds up single-precision scores over a whole text, the tokenizers library double-precision ones within a word.
// Where several ways to cut a text have the same sum but for rounding ("a|aa", "aa|a"), that decides: both are done here as
// they do it. Time is linear in the text: no token has kLongestToken bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/models/byte_trie.h"
#include "text/tokenizer.h"

namespace brisk {

// What only SentencePiece's own files say. With it, ids are those of the sentencepiece library.
struct SentencePieceRules {
  bool removes_spaces = true;         // at the ends of a text, and all but one between words
  bool prefix_space = true;           // "▁" before a text
  std::vector<TokenId> outside_text;  // never come out of text: specials, bytes, unused ones
  std::vector<TokenId> user_defined;  // come out of text as they stand, whatever their scores
  // Marian's ids are those of a vocab.json: pieces that it does not have are unknown, and a run of characters that the
  // model does not know may be a token of it.
  bool ids_from_vocabulary = false;
  std::vector<std::pair<std::string, double>> without_id;  // pieces and their scores
};

struct UnigramModelParts {
  std::vector<std::string> tokens;  // by id
  std::vector<double> scores;       // by id
  std::optional<TokenId> unknown;
  bool byte_fallback = false;  // an unknown character becomes <0x..> for each of its bytes
  std::optional<SentencePieceRules> sentencepiece;
};

class UnigramModel {
 public:
  static constexpr size_t kLongestToken = 8000;  // in bytes; sentencepiece's limit, too

  // A token that is too long and an unknown token that is no token are UserErrors that name `place`.
  UnigramModel(UnigramModelParts parts, const std::string& place);
  UnigramModel(const UnigramModel&) = delete;
  UnigramModel& operator=(const UnigramModel&) = delete;

  // Text as it is cut: normalized, spaces written as "▁". A UserError where it has a character that no token is for and the
  // vocabulary has no unknown one.
  void encode(std::string_view text, std::vector<TokenId>& out) const;

  // The length of the longest user-defined token that `text` begins with; 0: none.
  size_t user_defined_prefix(std::string_view text) const;

  const UnigramModelParts& parts() const { return parts_; }

 private:
  // The best way to the place behind a token: where that begins, and the sum of the scores.
  template <typename Score>
  struct Node {
    Score score = 0;
    TokenId token = -1;
    uint32_t length = 0;  // of the token, in bytes; 0: no way leads here
  };
  struct Span {
    size_t begin, end;
    TokenId token;
  };
  void index_sentencepiece();
  template <typename Score>
  void find_best(std::string_view text, std::vector<TokenId>& out) const;
  void append(std::string_view text, const Span& span, std::vector<TokenId>& out) const;
  TokenId find(std::string_view token) const;

  UnigramModelParts parts_;
  std::string place_;
  ByteTrie trie_;  // of all that may come out of text
  ByteTrie user_defined_;
  std::vector<double> scores_;                         // of the tokens of trie_: by id, those without one behind
  std::unordered_map<std::string_view, TokenId> ids_;  // by the token
  std::vector<TokenId> byte_ids_;                      // empty: no byte fallback
  double unknown_score_ = 0;
  TokenId unknown_;  // the unknown token's id; that of none is behind all others
};

}  // namespace brisk
