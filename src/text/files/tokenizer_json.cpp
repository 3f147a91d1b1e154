// Hugging Face's tokenizer.json, read and written:
//
//   {"version": "1.0", "truncation": null, "padding": null,
//    "added_tokens": [{"id": 0, "content": "<|endoftext|>", "special": true, ...}],
//    "normalizer": null, "pre_tokenizer": {...}, "post_processor": {...}, "decoder": {...},
//    "model": {"type": "BPE", "WordPiece" or "Unigram", "vocab": {"a": 0, ...}, ...}}
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/files/tokenizer_files.h"
#include "text/models/unigram_tokenizer.h"
#include "text/models/wordpiece_tokenizer.h"
#include "text/pipeline/json_fields.h"

namespace brisk {

namespace {

// Ids may leave gaps, but a gap costs memory here and a row of the embedding in a model.
size_t most_ids(size_t tokens) { return 4 * tokens + 65536; }

}  // namespace

std::vector<std::string> vocabulary_from_json(const nlohmann::json& model, const std::string& place) {
  const nlohmann::json& vocabulary = json_object(model, "vocab", place);
  std::vector<std::string> tokens;
  const size_t most = most_ids(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    if (!id.is_number_integer() || id < 0 || id >= most) {
      user_error(
          "{}: \"vocab\": the id of \"{}\" is {}; expected a whole number from 0 to {} (there are {} tokens): the file "
          "was edited or damaged, copy it again",
          place, token, describe_json(id), most - 1, vocabulary.size());
    }
    const auto index = id.get<size_t>();
    if (index >= tokens.size()) tokens.resize(index + 1);
    if (!tokens[index].empty()) {
      user_error(
          "{}: \"vocab\": the id {} belongs to both \"{}\" and \"{}\"; expected each id once: copy the file again",
          place, index, tokens[index], token);
    }
    tokens[index] = token;
  }
  while (!tokens.empty() && tokens.back().empty()) tokens.pop_back();  // "" is a token of no text
  return tokens;
}

std::string vocabulary_json(const std::vector<std::string>& tokens) {
  std::string text = "{";
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) continue;
    fmt::format_to(std::back_inserter(text), "{}\n{}: {}", text.size() == 1 ? "" : ",", json_quoted(tokens[id]), id);
  }
  return text + "}";
}

namespace {

// The library numbers added tokens itself: those of the model have its ids, the others follow. A file that says
// otherwise means one thing to it and another to its reader.
void read_added_tokens(const nlohmann::json& list, const std::string& path, const std::vector<std::string>& tokens,
                       TokenizerComponents& components) {
  std::unordered_map<std::string_view, TokenId> ids;
  std::unordered_set<TokenId> listed;
  int64_t next = 0;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) continue;
    ids.emplace(tokens[id], static_cast<TokenId>(id));
    ++next;
  }
  components.added_tokens.reserve(list.size());  // ids has views of their contents
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = fmt::format("{}: \"added_tokens\"[{}]", path, i);
    if (!list[i].is_object()) user_error("{}: found {}, expected an object", place, describe_json(list[i]));
    AddedToken token;
    token.content = json_text(list[i], "content", place);
    token.id = static_cast<TokenId>(json_integer(list[i], "id", place, 0, (int64_t{1} << 31) - 1));
    token.special = json_flag(list[i], "special", place, false);
    token.normalized = json_flag(list[i], "normalized", place, !token.special);
    token.single_word = json_flag(list[i], "single_word", place, false);
    token.lstrip = json_flag(list[i], "lstrip", place, false);
    token.rstrip = json_flag(list[i], "rstrip", place, false);
    if (token.content.empty()) continue;
    const auto known = ids.find(token.content);
    const int64_t expected = known != ids.end() ? known->second : next;
    if (token.id != expected) {
      user_error(
          "{}: the token \"{}\" has the id {}, where the tokenizers library would give it {} ({}): write the file "
          "again with the library, which keeps ids consistent",
          place, token.content, token.id, expected,
          known != ids.end() ? "the one it has already" : "the next after those before");
    }
    if (!listed.insert(token.id).second) continue;
    if (known == ids.end()) {
      if (static_cast<size_t>(expected) < tokens.size() && !tokens[expected].empty()) {
        user_error("{}: the token \"{}\" has the id {} of \"{}\": copy the file again", place, token.content, token.id,
                   tokens[expected]);
      }
      ++next;
    } else {
      next = std::max<int64_t>(next, token.id + 1);
    }
    components.added_tokens.push_back(std::move(token));
    ids.emplace(components.added_tokens.back().content, components.added_tokens.back().id);
  }
}

std::string component_text(const nlohmann::json& content, const char* key) {
  const auto found = content.find(key);
  return found == content.end() ? "null" : found->dump();
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_from_json(const std::string& path, const nlohmann::json& content,
                                               const nlohmann::json& config) {
  const nlohmann::json& model = json_object(content, "model", path);
  const std::string place = path + ": model";
  const auto finish = [&]<typename Parts>(Parts parts, auto make) -> std::unique_ptr<Tokenizer> {
    if (const auto list = content.find("added_tokens"); list != content.end() && !list->is_null()) {
      read_added_tokens(json_array(content, "added_tokens", path), path, parts.model.tokens, parts);
    }
    parts.normalizer = component_text(content, "normalizer");
    parts.pre_tokenizer = component_text(content, "pre_tokenizer");
    parts.post_processor = component_text(content, "post_processor");
    parts.decoder = component_text(content, "decoder");
    read_special_roles(path, config, parts.model.tokens, parts);
    return make(std::move(parts));
  };
  // Files of the library's first years do not say which model they have.
  const std::string type =
      json_text_or_null(model, "type", place).value_or(model.contains("merges") ? "BPE" : "WordPiece");
  if (type == "BPE") {
    TokenizerParts parts;
    parts.model = bpe_model_from_json(model, place);
    return finish(std::move(parts),
                  [&](TokenizerParts made) { return std::make_unique<BpeTokenizer>(std::move(made), path); });
  }
  if (type == "WordPiece") {
    WordPieceParts parts;
    parts.model = wordpiece_model_from_json(model, place);
    return finish(std::move(parts),
                  [&](WordPieceParts made) { return std::make_unique<WordPieceTokenizer>(std::move(made), path); });
  }
  if (type == "Unigram") {
    UnigramParts parts;
    parts.model = unigram_model_from_json(model, place);
    return finish(std::move(parts),
                  [&](UnigramParts made) { return std::make_unique<UnigramTokenizer>(std::move(made), path); });
  }
  refuse_component(place, type, "BPE, WordPiece, Unigram");
}

std::string PipelineTokenizer::to_json() const {
  std::string text = "{\n\"version\": \"1.0\",\n\"truncation\": null,\n\"padding\": null,\n\"added_tokens\": [";
  const auto out = std::back_inserter(text);
  for (size_t i = 0; i < components_.added_tokens.size(); ++i) {
    const AddedToken& token = components_.added_tokens[i];
    fmt::format_to(out,
                   "{}\n{{\"id\": {}, \"content\": {}, \"single_word\": {}, \"lstrip\": {}, \"rstrip\": {}, "
                   "\"normalized\": {}, \"special\": {}}}",
                   i > 0 ? "," : "", token.id, json_quoted(token.content), token.single_word, token.lstrip,
                   token.rstrip, token.normalized, token.special);
  }
  fmt::format_to(out, "],\n\"normalizer\": {},\n\"pre_tokenizer\": {},\n\"post_processor\": {},\n\"decoder\": {},\n",
                 components_.normalizer, components_.pre_tokenizer, components_.post_processor, components_.decoder);
  text += "\"model\": " + model_json() + "\n}\n";
  return text;
}

}  // namespace brisk
