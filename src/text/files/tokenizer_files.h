// The file formats behind load_tokenizer(): each is read into the parts of a tokenizer. For text/ itself, and for
// formats of models that carry a tokenizer inside (hub/).
//
//   TokenizerParts parts = parts_from_llama2c("tokenizer.bin", content);
//   auto tokenizer = std::make_unique<BpeTokenizer>(std::move(parts), "tokenizer.bin");
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "text/models/bpe_tokenizer.h"
#include "text/models/unigram_model.h"
#include "text/models/wordpiece_tokenizer.h"

namespace brisk {

// `path` is named in errors, which are UserErrors. `config` is the tokenizer_config.json next to it, with what
// special_tokens_map.json adds to it, or null.
std::unique_ptr<Tokenizer> tokenizer_from_json(const std::string& path, const nlohmann::json& content,
                                               const nlohmann::json& config);
TokenizerParts parts_from_gpt2(const std::string& vocabulary_path, const nlohmann::json& vocabulary,
                               const std::string& merges_path, std::string_view merges, const nlohmann::json& config);
WordPieceParts parts_from_vocab_txt(const std::string& path, std::string_view content, const nlohmann::json& config);
std::unique_ptr<Tokenizer> tokenizer_from_sentencepiece(const std::string& path, std::string_view content,
                                                        const nlohmann::json& config);
// Marian's source.spm or target.spm with the vocab.json that has the ids.
std::unique_ptr<Tokenizer> tokenizer_from_marian(const std::string& path, std::string_view content,
                                                 const std::string& vocabulary_path, const nlohmann::json& vocabulary);
TokenizerParts parts_from_llama2c(const std::string& path, std::string_view content);

// Byte-level BPE as GPT-2 has it, around a vocabulary written in the byte alphabet; as RoBERTa has it, around one with
// its special tokens. `config` as above.
TokenizerParts byte_level_parts(BpeModelParts model);
TokenizerParts roberta_parts(BpeModelParts model, const std::string& path, const nlohmann::json& config);
// And as our own vocabularies of text to text have it, with kTextToTextSpecials: </s> after each text.
TokenizerParts text_to_text_parts(BpeModelParts model);
inline constexpr const char* kGpt2EndOfDocument = "<|endoftext|>";
inline constexpr std::array<const char*, 5> kRobertaSpecials = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
inline constexpr std::array<const char*, 4> kTextToTextSpecials = {"<s>", "<pad>", "</s>", "<unk>"};

// The content of GPT-2's two files; nothing for a vocabulary that they cannot hold.
struct Gpt2Texts {
  std::string vocabulary, merges;
};
std::optional<Gpt2Texts> gpt2_texts(const BpeTokenizer& tokenizer);

// A token that is special and never comes out of text in any other way.
AddedToken special_token(TokenId id, std::string content);

// The "model" of a tokenizer.json, and its vocabulary: an object of tokens and ids. `place` is named in errors.
BpeModelParts bpe_model_from_json(const nlohmann::json& model, const std::string& place);
UnigramModelParts unigram_model_from_json(const nlohmann::json& model, const std::string& place);
WordPieceModelParts wordpiece_model_from_json(const nlohmann::json& model, const std::string& place);
std::vector<std::string> vocabulary_from_json(const nlohmann::json& model, const std::string& place);
std::string vocabulary_json(const std::vector<std::string>& tokens);

// Which special tokens are for what: as tokenizer_config.json says, else by the post-processor and the usual names.
// `tokens` are the model's.
void read_special_roles(const std::string& path, const nlohmann::json& config, const std::vector<std::string>& tokens,
                        TokenizerComponents& components);
// "eos_token": "</s>", or an object that has it as its "content".
std::optional<std::string> configured_token(const nlohmann::json& config, const char* key);
std::string tokenizer_config_text(const Tokenizer& tokenizer, const TokenizerFolderOptions& options);

// All around a WordPiece vocabulary that makes it BERT's. The tokens of `components` by their roles have to be set.
struct BertOptions {
  bool lowercase = true;
  std::optional<bool> strip_accents = std::nullopt;  // nothing: where it is lowercased
  bool handle_chinese_chars = true;
};
void set_bert_components(const BertOptions& options, const WordPieceModelParts& model, TokenizerComponents& components);
std::string vocab_txt_of(const WordPieceTokenizer& tokenizer);

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
