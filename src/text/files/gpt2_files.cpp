// GPT-2's two files: encoder.json (or vocab.json), an object of tokens and ids, and vocab.bpe (or merges.txt), a merge
// a line. RoBERTa has the same with other special tokens: <s> A </s>, and <mask> for what is to be guessed.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parse_json.h"
#include "text/files/tokenizer_files.h"
#include "text/pipeline/json_fields.h"
#include "text/unicode/byte_alphabet.h"

namespace brisk {

namespace {

void check_tokens(const std::string& path, const std::vector<std::string>& tokens) {
  std::array<bool, 256> has_byte{};
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::optional<std::string> piece = byte_alphabet_decode(tokens[id]);
    if (!piece || piece->empty()) {
      user_error(
          "{}: the token of id {} is \"{}\"; expected one or more characters of GPT-2's byte alphabet (such as "
          "\"Ġthe\"): use a byte-level vocabulary, or train one with `brisk tokenizer train`",
          path, id, tokens[id]);
    }
    if (piece->size() == 1) has_byte[static_cast<unsigned char>((*piece)[0])] = true;
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (!has_byte[byte]) {
      user_error(
          "{}: no token for the byte 0x{:02X} (\"{}\") among {} tokens; a byte-level vocabulary has all 256 bytes, "
          "so the file is cut short or of another kind: copy it again, or train one with `brisk tokenizer train`",
          path, byte, byte_alphabet_encode(std::string(1, static_cast<char>(byte))), tokens.size());
    }
  }
}

std::vector<std::string> read_tokens(const std::string& path, const nlohmann::json& content) {
  if (!content.is_object()) {
    user_error(
        "{}: found a JSON {}, expected an object of tokens and their ids as in GPT-2's encoder.json: copy the file "
        "again",
        path, content.type_name());
  }
  std::vector<std::string> tokens(content.size());
  std::vector<bool> is_taken(content.size());
  for (const auto& [token, id] : content.items()) {
    if (!id.is_number_integer() || id < 0 || id >= content.size()) {
      user_error(
          "{}: the id of \"{}\" is {}; expected a whole number from 0 to {}, as there are {} tokens: the file was "
          "edited or damaged, copy it again",
          path, token, id.is_structured() ? id.type_name() : id.dump(), content.size() - 1, content.size());
    }
    const auto index = id.get<size_t>();
    if (is_taken[index]) {
      user_error("{}: the id {} belongs to both \"{}\" and \"{}\"; expected each id once: copy the file again", path,
                 index, tokens[index], token);
    }
    tokens[index] = token;
    is_taken[index] = true;
  }
  check_tokens(path, tokens);
  return tokens;
}

void read_merges(const std::string& path, std::string_view lines, BpeModelParts& model) {
  MergeReader reader(model, 0);
  size_t line_number = 0;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t newline = std::min(lines.find('\n', begin), lines.size());
    std::string_view line = lines.substr(begin, newline - begin);
    begin = newline + 1;
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    reader.add(fmt::format("{}: line {}", path, line_number), line, model.merges);
  }
  if (model.merges.empty()) {
    user_error("{}: no merges in it; expected lines such as \"Ġ t\": copy GPT-2's vocab.bpe again", path);
  }
}

// Every token of more than a byte, but the special ones, is made by a merge: a file of merges that was cut between two
// lines shows itself here.
void check_all_are_made(const std::string& vocabulary_path, const std::string& merges_path,
                        const BpeModelParts& model) {
  std::vector<bool> is_made(model.tokens.size());
  for (const Merge& merge : model.merges) is_made[merge.result] = true;
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    const std::string& token = model.tokens[id];
    // RoBERTa's vocabulary is filled up with "madeupword0000" and so on.
    const bool is_special = (token.starts_with('<') && token.ends_with('>')) || token.starts_with("madeupword");
    if (!is_made[id] && !is_special && byte_alphabet_decode(token)->size() > 1) {
      user_error(
          "{}: no merge makes the token \"{}\" (id {}) of {}; the merges are cut short or of another tokenizer: "
          "copy both files again",
          merges_path, token, id, vocabulary_path);
    }
  }
}

bool is_roberta(const std::vector<std::string>& tokens, const nlohmann::json& config) {
  const bool has_class =
      config.is_object() && config.contains("tokenizer_class") && config["tokenizer_class"].is_string();
  if (has_class && config["tokenizer_class"].get<std::string>().starts_with("GPT2")) return false;
  return std::ranges::all_of(kRobertaSpecials,
                             [&](const char* name) { return std::ranges::find(tokens, name) != tokens.end(); });
}

TokenizerParts parts_around(BpeModelParts model, const std::string& path, const nlohmann::json& config) {
  if (is_roberta(model.tokens, config)) return roberta_parts(std::move(model), path, config);
  TokenizerParts parts = byte_level_parts(std::move(model));
  read_special_roles(path, config, parts.model.tokens, parts);
  return parts;
}

}  // namespace

AddedToken special_token(TokenId id, std::string content) { return {.id = id, .content = std::move(content)}; }

TokenizerParts byte_level_parts(BpeModelParts model) {
  TokenizerParts parts;
  // The spelling is nlohmann::json's, so that a file read back has the same fingerprint.
  parts.pre_tokenizer = R"({"add_prefix_space":false,"trim_offsets":true,"type":"ByteLevel","use_regex":true})";
  parts.post_processor = R"({"add_prefix_space":true,"trim_offsets":false,"type":"ByteLevel","use_regex":true})";
  parts.decoder = R"({"add_prefix_space":true,"trim_offsets":true,"type":"ByteLevel","use_regex":true})";
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    if (model.tokens[id] != kGpt2EndOfDocument) continue;
    parts.added_tokens.push_back(special_token(static_cast<TokenId>(id), model.tokens[id]));
    parts.end_of_document = static_cast<TokenId>(id);
  }
  parts.model = std::move(model);
  return parts;
}

TokenizerParts roberta_parts(BpeModelParts model, const std::string& path, const nlohmann::json& config) {
  TokenizerParts parts = byte_level_parts(std::move(model));
  const std::vector<std::string>& tokens = parts.model.tokens;
  const auto id_of = [&](std::string_view name) {
    const auto found = std::ranges::find(tokens, name);
    if (found == tokens.end()) {
      user_error(
          "{}: tokenizer_config.json next to it names the special token \"{}\", which is not in the vocabulary: "
          "copy both files again",
          path, name);
    }
    return static_cast<TokenId>(found - tokens.begin());
  };
  parts.added_tokens.clear();
  for (const char* name : kRobertaSpecials) {
    AddedToken token = special_token(id_of(name), name);
    token.lstrip = token.content == "<mask>";  // " <mask>" is one token, as it would be for a word
    parts.added_tokens.push_back(std::move(token));
  }
  std::ranges::sort(parts.added_tokens, {}, &AddedToken::id);
  const bool adds_space = config.is_object() && json_flag(config, "add_prefix_space", path, false);
  nlohmann::json pre_tokenizer = parse_own_json<nlohmann::json>(parts.pre_tokenizer);
  pre_tokenizer["add_prefix_space"] = adds_space;
  parts.pre_tokenizer = pre_tokenizer.dump();
  const std::string first = configured_token(config, "cls_token").value_or("<s>");
  const std::string last = configured_token(config, "sep_token").value_or("</s>");
  parts.post_processor = nlohmann::json{
      {"type", "RobertaProcessing"},
      {"sep", {last, id_of(last)}},
      {"cls", {first, id_of(first)}},
      {"trim_offsets", true},
      {"add_prefix_space",
       adds_space}}.dump();
  read_special_roles(path, config, parts.model.tokens, parts);
  return parts;
}

TokenizerParts text_to_text_parts(BpeModelParts model) {
  TokenizerParts parts = byte_level_parts(std::move(model));
  parts.added_tokens.clear();
  for (size_t id = 0; id < kTextToTextSpecials.size(); ++id)
    parts.added_tokens.push_back(special_token(static_cast<TokenId>(id), kTextToTextSpecials[id]));
  const char* const end = kTextToTextSpecials[2];
  const auto text = [](const char* name, int type) {
    return nlohmann::json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  const nlohmann::json ends = {{"SpecialToken", {{"id", end}, {"type_id", 0}}}};
  parts.post_processor = nlohmann::json{{"type", "TemplateProcessing"},
                                        {"single", {text("A", 0), ends}},
                                        {"pair", {text("A", 0), text("B", 0), ends}},
                                        {"special_tokens", {{end, {{"id", end}, {"ids", {2}}, {"tokens", {end}}}}}}}
                             .dump();
  read_special_roles("trained", nullptr, parts.model.tokens, parts);
  return parts;
}

std::optional<Gpt2Texts> gpt2_texts(const BpeTokenizer& tokenizer) {
  // Whether reading the files again would give the same tokenizer is asked of its fingerprint.
  const BpeModelParts& model = tokenizer.model();
  if (BpeTokenizer(parts_around(model, "", nullptr), "").fingerprint() != tokenizer.fingerprint()) return std::nullopt;
  nlohmann::json vocabulary = nlohmann::json::object();
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    if (!byte_alphabet_decode(model.tokens[id])) return std::nullopt;
    vocabulary[model.tokens[id]] = id;
  }
  Gpt2Texts texts = {vocabulary.dump() + "\n", "#version: 0.2\n"};
  for (const Merge& merge : model.merges) {
    texts.merges += model.tokens[merge.left] + " " + model.tokens[merge.right] + "\n";
  }
  return texts;
}

TokenizerParts parts_from_gpt2(const std::string& vocabulary_path, const nlohmann::json& vocabulary,
                               const std::string& merges_path, std::string_view merges, const nlohmann::json& config) {
  BpeModelParts model;
  model.tokens = read_tokens(vocabulary_path, vocabulary);
  read_merges(merges_path, merges, model);
  check_all_are_made(vocabulary_path, merges_path, model);
  return parts_around(std::move(model), vocabulary_path, config);
}

}  // namespace brisk
