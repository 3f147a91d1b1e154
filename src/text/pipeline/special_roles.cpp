// Which special tokens are for what: tokenizer.json does not say, tokenizer_config.json next to it does. Where there is
// none, the post-processor and the usual names do.
#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/parse_json.h"
#include "text/files/tokenizer_files.h"
#include "text/pipeline/post_processor.h"

namespace brisk {

namespace {

struct Role {
  const char* key;  // in tokenizer_config.json
  std::optional<TokenId> TokenizerComponents::*id;
  std::initializer_list<std::string_view> usual_names;
};

// BERT's separator and first token have no usual names: elsewhere these names mean something else, and BERT's
// post-processor names them.
const Role kRoles[] = {
    {"eos_token",
     &TokenizerComponents::end_of_document,
     {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]", "<|im_end|>", "<EOS>", "<|eos|>", "[SEP]"}},
    {"bos_token",
     &TokenizerComponents::start_of_text,
     {"<s>", "<|begin_of_text|>", "<bos>", "[BOS]", "<BOS>", "[CLS]"}},
    {"unk_token", &TokenizerComponents::unknown, {"[UNK]", "<unk>"}},
    {"sep_token", &TokenizerComponents::separator, {}},
    {"pad_token", &TokenizerComponents::padding, {"[PAD]", "<pad>"}},
    {"cls_token", &TokenizerComponents::classification, {}},
    {"mask_token", &TokenizerComponents::mask, {"[MASK]", "<mask>"}},
};

class TokenIds {
 public:
  TokenIds(const std::vector<std::string>& tokens, const TokenizerComponents& components)
      : tokens_(tokens), components_(components) {}

  std::optional<TokenId> operator()(std::string_view content) const {
    for (const AddedToken& token : components_.added_tokens) {
      if (token.content == content) return token.id;
    }
    const auto found = std::ranges::find(tokens_, content);
    if (content.empty() || found == tokens_.end()) return std::nullopt;
    return static_cast<TokenId>(found - tokens_.begin());
  }

 private:
  const std::vector<std::string>& tokens_;
  const TokenizerComponents& components_;
};

}  // namespace

std::optional<std::string> configured_token(const nlohmann::json& config, const char* key) {
  if (!config.is_object()) return std::nullopt;
  const auto found = config.find(key);
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object() || !found->contains("content") || !(*found)["content"].is_string()) return std::nullopt;
  return (*found)["content"].get<std::string>();
}

void read_special_roles(const std::string& path, const nlohmann::json& config, const std::vector<std::string>& tokens,
                        TokenizerComponents& components) {
  const TokenIds id_of(tokens, components);
  for (const Role& role : kRoles) {
    const std::optional<std::string> name = configured_token(config, role.key);
    components.*role.id = name ? id_of(*name) : std::nullopt;
  }
  const auto otherwise = [&](std::optional<TokenId>& role, const std::string& name) {
    if (!role) role = id_of(name);
  };
  const NamedTemplate around =
      read_text_templates(parse_own_json<nlohmann::json>(components.post_processor), path + ": post_processor").single;
  if (!around.suffix.empty()) otherwise(components.end_of_document, around.suffix.back());
  if (!around.prefix.empty()) otherwise(components.start_of_text, around.prefix.front());
  if (!around.prefix.empty() && !around.suffix.empty()) {
    otherwise(components.classification, around.prefix.front());
    otherwise(components.separator, around.suffix.back());
  }
  for (const Role& role : kRoles) {
    for (const std::string_view name : role.usual_names) otherwise(components.*role.id, std::string(name));
  }
}

std::string tokenizer_config_text(const Tokenizer& tokenizer, const TokenizerFolderOptions& options) {
  nlohmann::json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  if (const auto* pipeline = dynamic_cast<const PipelineTokenizer*>(&tokenizer)) {
    for (const Role& role : kRoles) {
      if (const auto id = pipeline->components().*role.id) config[role.key] = pipeline->token(*id);
    }
  } else {
    if (const auto end = tokenizer.end_of_document()) config["eos_token"] = tokenizer.piece(*end);
    if (const auto start = tokenizer.start_of_text()) config["bos_token"] = tokenizer.piece(*start);
  }
  // Without this line transformers hands token_type_ids to every model, and those that have none refuse them.
  const bool has_types = options.token_types && dynamic_cast<const WordPieceTokenizer*>(&tokenizer) != nullptr;
  config["model_input_names"] = has_types ? std::vector{"input_ids", "token_type_ids", "attention_mask"}
                                          : std::vector{"input_ids", "attention_mask"};
  if (options.max_length > 0) config["model_max_length"] = options.max_length;
  return config.dump(2) + "\n";
}

}  // namespace brisk
