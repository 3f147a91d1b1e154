// A Unigram tokenizer: of a tokenizer.json, with its normalizer and pre-tokenizer; or of a SentencePiece .model, whose rules
// for spaces and characters are its own (UnigramModelParts::sentencepiece). The components then say the same as closely as
// those of a tokenizer.json can, for programs that read what is saved; brisk reads the rules again.
//
//   UnigramTokenizer tokenizer(std::move(parts), "spiece.model");
//   tokenizer.encode("the cat", ids);
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "text/models/unigram_model.h"
#include "text/pipeline/character_map.h"
#include "text/pipeline/pipeline_tokenizer.h"

namespace brisk {

struct UnigramParts : TokenizerComponents {
  UnigramModelParts model;
};

class UnigramTokenizer final : public PipelineTokenizer {
 public:
  // `path` is named in errors.
  UnigramTokenizer(UnigramParts parts, const std::string& path);

  void encode(std::string_view text, std::vector<TokenId>& out) const override;

  const UnigramModelParts& model() const { return model_.parts(); }

 private:
  void encode_plain(std::string_view text, bool opens_text, std::vector<TokenId>& out) const override;
  bool token_continues_word(TokenId id, const std::string& token) const override;
  std::string model_json() const override;
  std::string normalize_as_sentencepiece(std::string_view text) const;

  UnigramModel model_;
  CharacterMap characters_;    // of SentencePiece's rules
  AddedTokenFinder specials_;  // where the rules are SentencePiece's: user-defined tokens belong to them
  uint32_t serial_;            // for the cache of words
};

// Where the character map is in a "normalizer": the base64 of its "precompiled_charsmap", "" where there is none.
std::string character_map_text(const nlohmann::json& normalizer);

}  // namespace brisk
