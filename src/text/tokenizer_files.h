// The file formats behind load_tokenizer(): each is read into TokenizerParts. For text/ itself, and for formats of
// models that carry a tokenizer inside (hub/).
//
//   TokenizerParts parts = parts_from_tokenizer_json("tokenizer.json", json);
//   auto tokenizer = std::make_unique<BpeTokenizer>(std::move(parts), "tokenizer.json");
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "text/bpe_tokenizer.h"

namespace brisk {

// `path` is named in errors, which are UserErrors.
TokenizerParts parts_from_tokenizer_json(const std::string& path, const nlohmann::json& content);
TokenizerParts parts_from_gpt2(const std::string& vocabulary_path, const nlohmann::json& vocabulary,
                               const std::string& merges_path, std::string_view merges);
TokenizerParts parts_from_sentencepiece(const std::string& path, std::string_view content);
TokenizerParts parts_from_llama2c(const std::string& path, std::string_view content);

// Byte-level BPE as GPT-2 has it, around a vocabulary written in the byte alphabet.
TokenizerParts byte_level_parts(BpeModelParts model);
inline constexpr const char* kGpt2EndOfDocument = "<|endoftext|>";

// The content of GPT-2's two files; nothing for a vocabulary that they cannot hold.
struct Gpt2Texts {
  std::string vocabulary, merges;
};
std::optional<Gpt2Texts> gpt2_texts(const BpeTokenizer& tokenizer);

// A token that is special and never comes out of text in any other way.
AddedToken special_token(TokenId id, std::string content);

// What tokenizer_config.json beside a tokenizer.json says about the ends of a text.
void read_ends_of_text(const std::string& path, const nlohmann::json& config, TokenizerParts& parts);
std::string tokenizer_config_text(const Tokenizer& tokenizer);

// Pieces with scores, as SentencePiece has them: every way to cut one into two others is a merge.
struct ScoredPiece {
  std::string text;  // spaces are "▁"
  float score = 0;
  bool merges = true;  // false: a special or a byte
};
std::vector<Merge> merges_by_score(const std::vector<ScoredPiece>& pieces);
// Llama's way around such a vocabulary; "<unk>", "<s>" and "</s>" by their ids.
TokenizerParts llama_parts(std::vector<ScoredPiece> pieces, TokenId unknown, std::optional<TokenId> start,
                           std::optional<TokenId> end);

// Finds the tokens that merges name, and refuses what is not there.
class MergeReader {
 public:
  // The tokens have to outlive it.
  MergeReader(const BpeModelParts& model, size_t prefix_size);

  // Adds the merge to `merges`. `place` is named in errors.
  void add(const std::string& place, std::string_view left, std::string_view right, std::vector<Merge>& merges);
  // The same, written as "left right".
  void add(const std::string& place, std::string_view written, std::vector<Merge>& merges);

 private:
  TokenId id_of(const std::string& place, std::string_view left, std::string_view right, std::string_view token) const;

  std::unordered_map<std::string_view, TokenId> ids_;
  std::unordered_set<uint64_t> seen_;  // pairs
  size_t prefix_size_;
};

}  // namespace brisk
