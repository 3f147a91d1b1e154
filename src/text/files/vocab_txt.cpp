// BERT's files: vocab.txt, a token a line, and tokenizer_config.json next to it, which may say how text is normalized
// and which tokens are special.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/text/unicode.h"
#include "text/files/tokenizer_files.h"
#include "text/pipeline/json_fields.h"

namespace brisk {

namespace {

// A line's number is its token's id. White space at the end of a line is no part of the token, as in the library; of
// two lines with the same token the last counts.
std::vector<std::string> read_lines(const std::string& path, std::string_view content) {
  std::vector<std::string> tokens;
  std::unordered_map<std::string, size_t> ids;
  while (!content.empty()) {
    const size_t newline = content.find('\n');
    std::string_view line = content.substr(0, newline);
    content.remove_prefix(newline == std::string_view::npos ? content.size() : newline + 1);
    if (const auto bad = find_invalid_utf8(line)) {
      user_error(
          "{}: line {}: byte {} is not UTF-8; expected a vocabulary with one token per line: copy the file again", path,
          tokens.size() + 1, *bad + 1);
    }
    while (!line.empty()) {
      size_t last = line.size() - 1;
      while (last > 0 && (static_cast<unsigned char>(line[last]) & 0xC0) == 0x80) --last;
      if (!is_white_space(decode_utf8(line, last).value)) break;
      line = line.substr(0, last);
    }
    const auto [found, is_new] = ids.try_emplace(std::string(line), tokens.size());
    if (!is_new) {
      tokens[found->second].clear();
      found->second = tokens.size();
    }
    tokens.emplace_back(line);
  }
  while (!tokens.empty() && tokens.back().empty()) tokens.pop_back();
  return tokens;
}

// A vocabulary that no config speaks of has capitals, or it is for lowercased text.
bool has_capitals(const std::vector<std::string>& tokens) {
  return std::ranges::any_of(tokens, [](const std::string& token) {
    const bool is_special = token.starts_with('[') && token.ends_with(']');
    return !is_special && std::ranges::any_of(token, [](char c) { return c >= 'A' && c <= 'Z'; });
  });
}

void refuse_other_classes(const std::string& path, const nlohmann::json& config) {
  const std::string name = config.is_object() && config.contains("tokenizer_class")
                               ? json_text_or_null(config, "tokenizer_class", path).value_or("")
                               : "";
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  const bool is_bert = (has("Bert") && !has("Japanese") && !has("Phobert")) || has("Electra") || has("LayoutLM") ||
                       has("Funnel") || has("Lxmert") || has("DPR") || has("PreTrainedTokenizerFast");
  if (!name.empty() && !is_bert) {
    user_error(
        "{}: tokenizer_config.json next to it says \"{}\", whose vocab.txt brisk does not read; it reads BERT's: "
        "convert the tokenizer to a tokenizer.json with transformers",
        path, name);
  }
}

// Tokens outside of the vocabulary: {"30522": {"content": "<new>", "special": false, ...}, ...}, as transformers writes
// them. Those of ids that the vocabulary has are its own; the others follow it.
void read_added_tokens(const nlohmann::json& list, const std::string& place, const std::vector<std::string>& tokens,
                       std::vector<AddedToken>& added) {
  if (!list.is_object()) user_error("{}: found {}, expected an object", place, describe_json(list));
  for (const auto& [id, content] : list.items()) {
    if (!content.is_object() || id.empty() || id.size() > 9 ||
        id.find_first_not_of("0123456789") != std::string::npos) {
      user_error("{}: \"{}\": {}; expected ids as keys and objects that describe the token", place, id,
                 describe_json(content));
    }
    AddedToken token = special_token(static_cast<TokenId>(std::stol(id)), json_text(content, "content", place));
    token.special = json_flag(content, "special", place, false);
    token.normalized = json_flag(content, "normalized", place, !token.special);
    token.single_word = json_flag(content, "single_word", place, false);
    token.lstrip = json_flag(content, "lstrip", place, false);
    token.rstrip = json_flag(content, "rstrip", place, false);
    std::erase_if(added, [&](const AddedToken& other) { return other.id == token.id; });
    added.push_back(std::move(token));
  }
  std::ranges::sort(added, {}, &AddedToken::id);
  auto next = static_cast<TokenId>(tokens.size());
  for (const AddedToken& token : added) {
    const bool is_known = token.id < static_cast<TokenId>(tokens.size());
    if (is_known ? tokens[token.id] != token.content : token.id != next++) {
      user_error("{}: the token \"{}\" has the id {}, which is {}: copy the files again", place, token.content,
                 token.id,
                 is_known ? format_message("\"{}\" in the vocabulary", tokens[token.id])
                          : fmt::format("not the next, {}", next - 1));
    }
  }
}

}  // namespace

void set_bert_components(const BertOptions& options, const WordPieceModelParts& model,
                         TokenizerComponents& components) {
  // The spelling is nlohmann::json's, so that a file read back has the same fingerprint.
  const nlohmann::json strip_accents = options.strip_accents ? nlohmann::json(*options.strip_accents) : nullptr;
  components.normalizer = nlohmann::json{
      {"type", "BertNormalizer"},
      {"clean_text", true},
      {"handle_chinese_chars", options.handle_chinese_chars},
      {"strip_accents", strip_accents},
      {"lowercase",
       options.lowercase}}.dump();
  components.pre_tokenizer = R"({"type":"BertPreTokenizer"})";
  components.decoder =
      nlohmann::json{{"type", "WordPiece"}, {"prefix", model.continuing_subword_prefix}, {"cleanup", true}}.dump();
  const auto special = [&](TokenId id, int type) {
    return nlohmann::json{{"SpecialToken", {{"id", model.tokens[id]}, {"type_id", type}}}};
  };
  const auto text = [](const char* name, int type) {
    return nlohmann::json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  const TokenId first = components.classification.value(), last = components.separator.value();
  nlohmann::json tokens = nlohmann::json::object();
  for (const TokenId id : {first, last}) {
    const std::string& name = model.tokens[id];
    tokens[name] = {{"id", name}, {"ids", std::vector{id}}, {"tokens", std::vector{name}}};
  }
  components.post_processor = nlohmann::json{
      {"type", "TemplateProcessing"},
      {"single", {special(first, 0), text("A", 0), special(last, 0)}},
      {"pair", {special(first, 0), text("A", 0), special(last, 0), text("B", 1), special(last, 1)}},
      {"special_tokens", tokens}}.dump();
}

WordPieceParts parts_from_vocab_txt(const std::string& path, std::string_view content, const nlohmann::json& config) {
  refuse_other_classes(path, config);
  WordPieceParts parts;
  WordPieceModelParts& model = parts.model;
  model.tokens = read_lines(path, content);
  const auto token_of = [&](const char* key, const char* usual, const char* purpose, std::optional<TokenId>& id) {
    const std::string name = configured_token(config, key).value_or(usual);
    const auto found = std::ranges::find(model.tokens, name);
    if (found != model.tokens.end()) {
      id = static_cast<TokenId>(found - model.tokens.begin());
    } else if (purpose != nullptr) {
      user_error(
          "{}: no token \"{}\" among {}, which BERT's vocabularies have {}: copy the file again, or name another "
          "as \"{}\" in tokenizer_config.json next to it",
          path, name, model.tokens.size(), purpose, key);
    }
  };
  token_of("unk_token", "[UNK]", "for words without tokens", parts.unknown);
  token_of("cls_token", "[CLS]", "before every text", parts.classification);
  token_of("sep_token", "[SEP]", "behind every text", parts.separator);
  token_of("pad_token", "[PAD]", nullptr, parts.padding);
  token_of("mask_token", "[MASK]", nullptr, parts.mask);
  model.unknown_token = model.tokens[*parts.unknown];

  const nlohmann::json& said = config.is_object() ? config : nlohmann::json::object();
  const std::string place = path + ": tokenizer_config.json";
  BertOptions options;
  options.lowercase = json_flag(said, "do_lower_case", place, !has_capitals(model.tokens));
  if (said.contains("strip_accents") && !said["strip_accents"].is_null()) {
    options.strip_accents = json_flag(said, "strip_accents", place, false);
  }
  options.handle_chinese_chars = json_flag(said, "tokenize_chinese_chars", place, true);
  set_bert_components(options, model, parts);

  std::vector<TokenId> specials;
  for (const auto& id : {parts.padding, parts.unknown, parts.classification, parts.separator, parts.mask}) {
    if (id) specials.push_back(*id);
  }
  std::ranges::sort(specials);
  specials.erase(std::unique(specials.begin(), specials.end()), specials.end());
  for (const TokenId id : specials) parts.added_tokens.push_back(special_token(id, model.tokens[id]));
  if (said.contains("added_tokens_decoder")) {
    read_added_tokens(said["added_tokens_decoder"], place + ": \"added_tokens_decoder\"", model.tokens,
                      parts.added_tokens);
  }
  read_special_roles(path, config, model.tokens, parts);
  return parts;
}

std::string vocab_txt_of(const WordPieceTokenizer& tokenizer) {
  std::string text;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) text += tokenizer.token(id) + "\n";
  return text;
}

}  // namespace brisk
