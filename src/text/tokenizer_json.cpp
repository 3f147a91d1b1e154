// Hugging Face's tokenizer.json, read and written:
//
//   {"version": "1.0", "truncation": null, "padding": null,
//    "added_tokens": [{"id": 0, "content": "<|endoftext|>", "special": true, ...}],
//    "normalizer": null, "pre_tokenizer": {...}, "post_processor": {...}, "decoder": {...},
//    "model": {"type": "BPE", "vocab": {"a": 0, ...}, "merges": ["a b", ...] or [["a", "b"], ...], ...}}
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/json_fields.h"
#include "text/tokenizer_files.h"

namespace brisk {

namespace {

// Ids may leave gaps, but a gap costs memory here and a row of the embedding in a model.
size_t most_ids(size_t tokens) { return 4 * tokens + 65536; }

void read_vocabulary(const nlohmann::json& vocabulary, const std::string& place, BpeModelParts& model) {
  const size_t most = most_ids(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    if (!id.is_number_integer() || id < 0 || id >= most) {
      user_error(
          "{}: \"vocab\": the id of \"{}\" is {}; expected a whole number from 0 to {} (there are {} tokens): the file "
          "was edited or damaged, copy it again",
          place, token, describe_json(id), most - 1, vocabulary.size());
    }
    const auto index = id.get<size_t>();
    if (index >= model.tokens.size()) model.tokens.resize(index + 1);
    if (!model.tokens[index].empty()) {
      user_error(
          "{}: \"vocab\": the id {} belongs to both \"{}\" and \"{}\"; expected each id once: copy the file again",
          place, index, model.tokens[index], token);
    }
    model.tokens[index] = token;
  }
  while (!model.tokens.empty() && model.tokens.back().empty()) model.tokens.pop_back();  // "" is a token of no text
}

void read_merges(const nlohmann::json& merges, const std::string& place, BpeModelParts& model) {
  MergeReader reader(model, model.continuing_subword_prefix.value_or("").size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const nlohmann::json& merge = merges[i];
    const std::string where = fmt::format("{}: \"merges\"[{}]", place, i);
    if (merge.is_string()) {
      const auto& written = merge.get_ref<const std::string&>();
      if (i == 0 && written.starts_with("#version")) continue;
      reader.add(where, written, model.merges);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      reader.add(where, merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(), model.merges);
    } else {
      user_error("{}: found {}, expected two tokens, such as \"a b\" or [\"a\", \"b\"]: copy the file again", where,
                 describe_json(merge));
    }
  }
}

BpeModelParts read_model(const nlohmann::json& content, const std::string& place) {
  const std::string type = json_text_or_null(content, "type", place).value_or("BPE");
  if (type != "BPE") refuse_component(place, type, "BPE");
  if (const auto dropout = content.find("dropout"); dropout != content.end() && !dropout->is_null()) {
    if (!dropout->is_number() || *dropout != 0) {
      user_error("{}: \"dropout\" is {}, which makes the same text other tokens each time; set it to null", place,
                 describe_json(*dropout));
    }
  }
  BpeModelParts model;
  model.unknown_token = json_text_or_null(content, "unk_token", place);
  model.continuing_subword_prefix = json_text_or_null(content, "continuing_subword_prefix", place);
  model.end_of_word_suffix = json_text_or_null(content, "end_of_word_suffix", place);
  for (auto* text : {&model.continuing_subword_prefix, &model.end_of_word_suffix}) {
    if (*text && (*text)->empty()) *text = std::nullopt;  // an empty one adds nothing
  }
  model.fuse_unknown = json_flag(content, "fuse_unk", place, false);
  model.byte_fallback = json_flag(content, "byte_fallback", place, false);
  model.ignore_merges = json_flag(content, "ignore_merges", place, false);
  read_vocabulary(json_object(content, "vocab", place), place, model);
  read_merges(json_array(content, "merges", place), place, model);
  if (model.unknown_token && std::ranges::find(model.tokens, *model.unknown_token) == model.tokens.end()) {
    user_error("{}: \"unk_token\" is \"{}\", which is not in the vocabulary: copy the file again", place,
               *model.unknown_token);
  }
  return model;
}

// The library numbers added tokens itself: those of the model have its ids, the others follow. A file that says
// otherwise means one thing to it and another to its reader.
void read_added_tokens(const nlohmann::json& list, const std::string& path, TokenizerParts& parts) {
  std::unordered_map<std::string_view, TokenId> ids;
  const std::vector<std::string>& tokens = parts.model.tokens;
  std::unordered_set<TokenId> listed;
  int64_t next = 0;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) continue;
    ids.emplace(tokens[id], static_cast<TokenId>(id));
    ++next;
  }
  parts.added_tokens.reserve(list.size());  // ids has views of their contents
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
          "again "
          "with the library, which keeps ids in step",
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
    parts.added_tokens.push_back(std::move(token));
    ids.emplace(parts.added_tokens.back().content, parts.added_tokens.back().id);
  }
}

std::string component_text(const nlohmann::json& content, const char* key) {
  const auto found = content.find(key);
  return found == content.end() ? "null" : found->dump();
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string quoted_or_null(const std::optional<std::string>& text) { return text ? quoted(*text) : "null"; }

}  // namespace

TokenizerParts parts_from_tokenizer_json(const std::string& path, const nlohmann::json& content) {
  TokenizerParts parts;
  parts.model = read_model(json_object(content, "model", path), path + ": model");
  if (const auto list = content.find("added_tokens"); list != content.end() && !list->is_null()) {
    read_added_tokens(json_array(content, "added_tokens", path), path, parts);
  }
  parts.normalizer = component_text(content, "normalizer");
  parts.pre_tokenizer = component_text(content, "pre_tokenizer");
  parts.post_processor = component_text(content, "post_processor");
  parts.decoder = component_text(content, "decoder");
  return parts;
}

std::string BpeTokenizer::to_json() const {
  const BpeModelParts& model = model_.parts();
  std::string text = "{\n\"version\": \"1.0\",\n\"truncation\": null,\n\"padding\": null,\n\"added_tokens\": [";
  const auto out = std::back_inserter(text);
  for (size_t i = 0; i < parts_.added_tokens.size(); ++i) {
    const AddedToken& token = parts_.added_tokens[i];
    fmt::format_to(out,
                   "{}\n{{\"id\": {}, \"content\": {}, \"single_word\": {}, \"lstrip\": {}, \"rstrip\": {}, "
                   "\"normalized\": {}, \"special\": {}}}",
                   i > 0 ? "," : "", token.id, quoted(token.content), token.single_word, token.lstrip, token.rstrip,
                   token.normalized, token.special);
  }
  fmt::format_to(out, "],\n\"normalizer\": {},\n\"pre_tokenizer\": {},\n\"post_processor\": {},\n\"decoder\": {},\n",
                 parts_.normalizer, parts_.pre_tokenizer, parts_.post_processor, parts_.decoder);
  fmt::format_to(out,
                 "\"model\": {{\n\"type\": \"BPE\", \"dropout\": null, \"unk_token\": {}, "
                 "\"continuing_subword_prefix\": {}, \"end_of_word_suffix\": {},\n\"fuse_unk\": {}, \"byte_fallback\": "
                 "{}, \"ignore_merges\": {},\n\"vocab\": {{",
                 quoted_or_null(model.unknown_token), quoted_or_null(model.continuing_subword_prefix),
                 quoted_or_null(model.end_of_word_suffix), model.fuse_unknown, model.byte_fallback,
                 model.ignore_merges);
  bool is_first = true;
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    if (model.tokens[id].empty()) continue;
    fmt::format_to(out, "{}\n{}: {}", is_first ? "" : ",", quoted(model.tokens[id]), id);
    is_first = false;
  }
  text += "},\n\"merges\": [";
  // "a b" is what every version of the library reads; a token with a space in it takes the newer form.
  const bool has_space = std::ranges::any_of(model.merges, [&](const Merge& merge) {
    return model.tokens[merge.left].find(' ') != std::string::npos ||
           model.tokens[merge.right].find(' ') != std::string::npos;
  });
  for (size_t i = 0; i < model.merges.size(); ++i) {
    const std::string &left = model.tokens[model.merges[i].left], &right = model.tokens[model.merges[i].right];
    if (i > 0) text += ',';
    if (has_space) {
      fmt::format_to(out, "\n[{}, {}]", quoted(left), quoted(right));
    } else {
      fmt::format_to(out, "\n{}", quoted(left + " " + right));
    }
  }
  text += "]\n}\n}\n";
  return text;
}

}  // namespace brisk
