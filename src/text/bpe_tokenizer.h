// A tokenizer of Hugging Face's kind: normalizer, pre-tokenizer, BPE, decoder, and tokens added to the vocabulary. All
// that brisk reads becomes one of these (tokenizer_files.h), so that all of it can be written as a tokenizer.json.
//
//   BpeTokenizer tokenizer(std::move(parts), "tokenizer.json");       // UserError for a component that is not known
//   tokenizer.encode("the cat", ids);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe_model.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/token_decoder.h"
#include "text/tokenizer.h"

namespace brisk {

struct TokenizerParts {
  BpeModelParts model;
  std::vector<AddedToken> added_tokens;
  // The components as JSON, "null" where there is none.
  std::string normalizer = "null", pre_tokenizer = "null", post_processor = "null", decoder = "null";
  std::optional<TokenId> end_of_document, start_of_text;
};

class BpeTokenizer final : public Tokenizer {
 public:
  // `path` is named in errors.
  BpeTokenizer(TokenizerParts parts, const std::string& path);

  void encode(std::string_view text, std::vector<TokenId>& out) const override;
  void encode_with_specials(std::string_view text, std::vector<TokenId>& out) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  std::string piece(TokenId id) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(tokens_.size()); }
  std::optional<TokenId> end_of_document() const override { return parts_.end_of_document; }
  std::optional<TokenId> start_of_text() const override { return parts_.start_of_text; }
  uint64_t fingerprint() const override { return fingerprint_; }
  void save(const std::string& path) const override;
  std::string to_json() const;

  const BpeModelParts& model() const { return model_.parts(); }

 private:
  void encode_normalized(std::string_view text, bool opens_text, std::vector<TokenId>& out) const;
  void encode_plain(std::string_view text, bool opens_text, std::vector<TokenId>& out) const;
  const std::string& token_at(TokenId id) const;

  TokenizerParts parts_;  // without the model's
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  TokenDecoder decoder_;
  BpeModel model_;
  std::vector<std::string> tokens_;  // by id, added ones included
  std::vector<bool> is_added_;
  AddedTokenFinder before_normalizing_, after_normalizing_;
  std::vector<TokenId> specials_before_, specials_after_;  // what the post-processor puts around a text
  uint64_t fingerprint_ = 0;
};

}  // namespace brisk
