// Which tokens begin and end a text: tokenizer.json does not say, tokenizer_config.json beside it does. Where there is
// none, the post-processor and the usual names do.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "text/post_processor.h"
#include "text/tokenizer_files.h"

namespace brisk {

namespace {

constexpr std::array<std::string_view, 9> kEndNames = {"<|endoftext|>", "<|end_of_text|>", "</s>",    "<eos>", "[EOS]",
                                                       "<|im_end|>",    "<EOS>",           "<|eos|>", "[SEP]"};
constexpr std::array<std::string_view, 6> kStartNames = {"<s>",  "<|begin_of_text|>", "<bos>", "[BOS]", "<BOS>",
                                                         "[CLS]"};

std::optional<TokenId> id_of(const TokenizerParts& parts, std::string_view content) {
  for (const AddedToken& token : parts.added_tokens) {
    if (token.content == content) return token.id;
  }
  const auto found = std::ranges::find(parts.model.tokens, content);
  if (content.empty() || found == parts.model.tokens.end()) return std::nullopt;
  return static_cast<TokenId>(found - parts.model.tokens.begin());
}

// "eos_token": "</s>", or an object that has it as its "content".
std::optional<TokenId> configured(const TokenizerParts& parts, const nlohmann::json& config, const char* key) {
  if (!config.is_object()) return std::nullopt;
  const auto found = config.find(key);
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return id_of(parts, found->get<std::string>());
  if (!found->is_object() || !found->contains("content") || !(*found)["content"].is_string()) return std::nullopt;
  return id_of(parts, (*found)["content"].get<std::string>());
}

}  // namespace

void read_ends_of_text(const std::string& path, const nlohmann::json& config, TokenizerParts& parts) {
  const TextTemplate around =
      read_text_template(nlohmann::json::parse(parts.post_processor), path + ": post_processor");
  parts.end_of_document = configured(parts, config, "eos_token");
  parts.start_of_text = configured(parts, config, "bos_token");
  if (!parts.end_of_document && !around.after.empty()) parts.end_of_document = id_of(parts, around.after.back());
  if (!parts.start_of_text && !around.before.empty()) parts.start_of_text = id_of(parts, around.before.front());
  for (const std::string_view name : kEndNames) {
    if (!parts.end_of_document) parts.end_of_document = id_of(parts, name);
  }
  for (const std::string_view name : kStartNames) {
    if (!parts.start_of_text) parts.start_of_text = id_of(parts, name);
  }
}

std::string tokenizer_config_text(const Tokenizer& tokenizer) {
  nlohmann::json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  if (const auto end = tokenizer.end_of_document()) config["eos_token"] = tokenizer.piece(*end);
  if (const auto start = tokenizer.start_of_text()) config["bos_token"] = tokenizer.piece(*start);
  return config.dump(2) + "\n";
}

}  // namespace brisk
