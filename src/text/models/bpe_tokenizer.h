// A tokenizer whose words are merged by BPE: GPT-2's, Llama's, RoBERTa's and our own.
//
//   BpeTokenizer tokenizer(std::move(parts), "tokenizer.json");       // UserError if a component is unsupported
//   tokenizer.encode("the cat", ids);
#pragma once

#include "text/models/bpe_model.h"
#include "text/pipeline/pipeline_tokenizer.h"

namespace brisk {

struct TokenizerParts : TokenizerComponents {
  BpeModelParts model;
};

class BpeTokenizer final : public PipelineTokenizer {
 public:
  // `path` is named in errors.
  BpeTokenizer(TokenizerParts parts, const std::string& path);

  const BpeModelParts& model() const { return model_.parts(); }

 private:
  void encode_plain(std::string_view text, bool opens_text, std::vector<TokenId>& out) const override;
  bool token_continues_word(TokenId id, const std::string& token) const override;
  std::string model_json() const override;

  BpeModel model_;
};

}  // namespace brisk
