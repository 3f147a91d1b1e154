// A WordPiece tokenizer, as BERT's.
//
//   WordPieceTokenizer tokenizer(std::move(parts), "tokenizer.json");    // UserError if a component is unsupported
//   tokenizer.encode_with_specials("the cat", ids);                      // [CLS] the cat [SEP]
#pragma once

#include <array>

#include "text/models/wordpiece_model.h"
#include "text/pipeline/pipeline_tokenizer.h"

namespace brisk {

struct WordPieceParts : TokenizerComponents {
  WordPieceModelParts model;
};

class WordPieceTokenizer final : public PipelineTokenizer {
 public:
  // `path` is named in errors.
  WordPieceTokenizer(WordPieceParts parts, const std::string& path);

  const WordPieceModelParts& model() const { return model_.parts(); }

 private:
  void encode_given(std::string_view text, bool opens_text, std::vector<TokenId>& out) const override;
  void encode_plain(std::string_view text, bool opens_text, std::vector<TokenId>& out) const override;
  bool token_continues_word(TokenId id, const std::string& token) const override;
  std::string model_json() const override;
  void encode_piece(std::string_view piece, std::vector<TokenId>& out) const;
  void encode_around_chinese(std::string_view piece, std::vector<TokenId>& out) const;

  WordPieceModel model_;
  bool cuts_given_text_ = false;  // bert_words.h: the components are BERT's
  bool lowercases_ = false, isolates_chinese_ = false;
  std::array<TokenId, 128> punctuation_ids_{};  // where cuts_given_text_: of ASCII punctuation
  uint32_t serial_;                             // for the cache of pieces of text as it is given
};

}  // namespace brisk
