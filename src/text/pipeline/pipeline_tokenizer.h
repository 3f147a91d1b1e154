// A tokenizer of Hugging Face's kind: added tokens, normalizer, pre-tokenizer, a model of the words, decoder, and the
// special tokens around texts. All that brisk reads becomes one of these (tokenizer_files.h), so that all of it can be
// written as a tokenizer.json; its two kinds are BpeTokenizer and WordPieceTokenizer.
//
//   const PipelineTokenizer& tokenizer = ...;
//   tokenizer.encode("the cat", ids);
//   tokenizer.to_json();
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/pipeline/added_tokens.h"
#include "text/pipeline/normalizer.h"
#include "text/pipeline/post_processor.h"
#include "text/pipeline/pre_tokenizer.h"
#include "text/pipeline/token_decoder.h"
#include "text/tokenizer.h"

namespace brisk {

// All of a tokenizer but its model.
struct TokenizerComponents {
  std::vector<AddedToken> added_tokens;
  // The components as JSON, "null" where there is none.
  std::string normalizer = "null", pre_tokenizer = "null", post_processor = "null", decoder = "null";
  // Special tokens by what they are for.
  std::optional<TokenId> end_of_document, start_of_text;
  std::optional<TokenId> unknown, separator, padding, classification, mask;
};

class PipelineTokenizer : public Tokenizer {
 public:
  void encode(std::string_view text, std::vector<TokenId>& out) const override;
  void encode_with_specials(std::string_view text, std::vector<TokenId>& out) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  std::string piece(TokenId id) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(tokens_.size()); }
  std::optional<TokenId> end_of_document() const override { return components_.end_of_document; }
  std::optional<TokenId> start_of_text() const override { return components_.start_of_text; }
  std::optional<TokenId> token_id(std::string_view token) const override;
  SequenceTemplate single_template() const override { return single_; }
  SequenceTemplate pair_template() const override;
  std::optional<TokenId> mask_token() const override { return components_.mask; }
  bool continues_word(TokenId id) const override;
  uint64_t fingerprint() const override { return fingerprint_; }
  void save(const std::string& path) const override;
  std::string to_json() const;

  const TokenizerComponents& components() const { return components_; }
  // A token as files write it. An id outside the vocabulary is a UserError.
  const std::string& token(TokenId id) const;

 protected:
  // `tokens`: the model's, by id. `path` is named in errors, UserErrors for components that are not known.
  PipelineTokenizer(TokenizerComponents components, const std::vector<std::string>& tokens, const std::string& path);

  // Text between the added tokens that are looked for in the text as it was given.
  virtual void encode_given(std::string_view text, bool opens_text, std::vector<TokenId>& out) const;
  // Normalized text without added tokens in it.
  virtual void encode_plain(std::string_view text, bool opens_text, std::vector<TokenId>& out) const = 0;
  // Whether this token of the model goes on with the word before it.
  virtual bool token_continues_word(TokenId id, const std::string& token) const = 0;
  virtual std::string model_json() const = 0;

  // What decides the ids in addition to the model: to be hashed before its content and after it.
  uint64_t hash_components(std::string_view model_type) const;
  uint64_t hash_added_tokens(uint64_t hash) const;

  const Normalizer& normalizer() const { return normalizer_; }
  const PreTokenizer& pre_tokenizer() const { return pre_tokenizer_; }
  const TokenDecoder& decoder() const { return decoder_; }
  bool looks_for_tokens_in_normalized() const { return !after_normalizing_.finds_nothing(); }

  uint64_t fingerprint_ = 0;  // for the constructors of the kinds to set

 private:
  void index_added_tokens();
  SequenceTemplate ids_of(const NamedTemplate& named, const std::string& path) const;

  TokenizerComponents components_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  TokenDecoder decoder_;
  std::vector<std::string> tokens_;  // by id, added ones included
  std::vector<bool> is_added_;
  AddedTokenFinder before_normalizing_, after_normalizing_;
  SequenceTemplate single_, pair_;
  std::string pair_problem_;
};

}  // namespace brisk
