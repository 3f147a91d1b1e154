// The "model" of a tokenizer.json with Unigram, read and written:
//
//   {"type": "Unigram", "unk_id": 2, "byte_fallback": false, "vocab": [["<pad>", 0.0], ["▁the", -3.2], ...],
//    "sentencepiece": {"remove_extra_whitespaces": true, "add_dummy_prefix": true, "outside_text": [0, 1, 2], ...}}
//
// The last is brisk's, for vocabularies that it read from SentencePiece's own files; other programs pass over it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/files/tokenizer_files.h"
#include "text/models/unigram_tokenizer.h"
#include "text/pipeline/json_fields.h"

namespace brisk {

namespace {

std::pair<std::string, double> scored_token(const nlohmann::json& entry, const std::string& place) {
  const bool is_pair = entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number();
  if (!is_pair || !std::isfinite(entry[1].get<double>())) {
    user_error("{}: found {}, expected a token and its score, such as [\"▁the\", -3.2]: copy the file again", place,
               describe_json(entry));
  }
  return {entry[0].get<std::string>(), entry[1].get<double>()};
}

std::vector<TokenId> ids_from_json(const nlohmann::json& rules, const char* key, const std::string& place,
                                   size_t tokens) {
  std::vector<TokenId> ids;
  for (const nlohmann::json& id : json_array(rules, key, place)) {
    if (!id.is_number_integer() || id < 0 || id >= tokens) {
      user_error("{}: \"{}\": found {}, expected ids from 0 to {}: copy the file again", place, key, describe_json(id),
                 tokens - 1);
    }
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

SentencePieceRules rules_from_json(const nlohmann::json& content, const std::string& place, size_t tokens) {
  SentencePieceRules rules;
  rules.removes_spaces = json_flag(content, "remove_extra_whitespaces", place, true);
  rules.prefix_space = json_flag(content, "add_dummy_prefix", place, true);
  rules.ids_from_vocabulary = json_flag(content, "ids_from_vocabulary", place, false);
  rules.outside_text = ids_from_json(content, "outside_text", place, tokens);
  rules.user_defined = ids_from_json(content, "user_defined", place, tokens);
  const nlohmann::json& list = json_array(content, "without_id", place);
  for (size_t i = 0; i < list.size(); ++i) {
    rules.without_id.push_back(scored_token(list[i], fmt::format("{}: \"without_id\"[{}]", place, i)));
  }
  return rules;
}

void append_scored(std::string_view separator, const std::string& token, double score, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}[{}, {}]", separator, json_quoted(token), nlohmann::json(score).dump());
}

}  // namespace

UnigramModelParts unigram_model_from_json(const nlohmann::json& content, const std::string& place) {
  UnigramModelParts model;
  const nlohmann::json& vocabulary = json_array(content, "vocab", place);
  if (vocabulary.empty()) user_error("{}: \"vocab\" is empty, expected tokens and scores: copy the file again", place);
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    auto [token, score] = scored_token(vocabulary[i], fmt::format("{}: \"vocab\"[{}]", place, i));
    model.tokens.push_back(std::move(token));
    model.scores.push_back(score);
  }
  const auto last = static_cast<int64_t>(model.tokens.size()) - 1;
  if (const auto unknown = content.find("unk_id"); unknown != content.end() && !unknown->is_null()) {
    model.unknown = static_cast<TokenId>(json_integer(content, "unk_id", place, 0, last));
  }
  model.byte_fallback = json_flag(content, "byte_fallback", place, false);
  if (content.contains("sentencepiece")) {
    model.sentencepiece = rules_from_json(json_object(content, "sentencepiece", place), place + ": \"sentencepiece\"",
                                          model.tokens.size());
  }
  return model;
}

std::string UnigramTokenizer::model_json() const {
  const UnigramModelParts& parts = model();
  std::string text = fmt::format("{{\n\"type\": \"Unigram\", \"unk_id\": {}, \"byte_fallback\": {},\n\"vocab\": [",
                                 parts.unknown ? fmt::format("{}", *parts.unknown) : "null", parts.byte_fallback);
  for (size_t id = 0; id < parts.tokens.size(); ++id) {
    append_scored(id > 0 ? ",\n" : "\n", parts.tokens[id], parts.scores[id], text);
  }
  text += "]";
  if (parts.sentencepiece) {
    const SentencePieceRules& rules = *parts.sentencepiece;
    fmt::format_to(std::back_inserter(text),
                   ",\n\"sentencepiece\": {{\"remove_extra_whitespaces\": {}, \"add_dummy_prefix\": {}, "
                   "\"ids_from_vocabulary\": {},\n\"outside_text\": [{}],\n\"user_defined\": [{}],\n\"without_id\": [",
                   rules.removes_spaces, rules.prefix_space, rules.ids_from_vocabulary,
                   fmt::join(rules.outside_text, ","), fmt::join(rules.user_defined, ","));
    for (size_t i = 0; i < rules.without_id.size(); ++i) {
      append_scored(i > 0 ? ",\n" : "\n", rules.without_id[i].first, rules.without_id[i].second, text);
    }
    text += "]}";
  }
  return text + "\n}";
}

}  // namespace brisk
