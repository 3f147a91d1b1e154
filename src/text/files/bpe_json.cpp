// The "model" of a tokenizer.json with BPE, read and written:
//
//   {"type": "BPE", "vocab": {"a": 0, ...}, "merges": ["a b", ...] or [["a", "b"], ...], ...}
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/files/tokenizer_files.h"
#include "text/pipeline/json_fields.h"

namespace brisk {

namespace {

std::string quoted_or_null(const std::optional<std::string>& text) { return text ? json_quoted(*text) : "null"; }

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

}  // namespace

BpeModelParts bpe_model_from_json(const nlohmann::json& content, const std::string& place) {
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
  model.tokens = vocabulary_from_json(content, place);
  read_merges(json_array(content, "merges", place), place, model);
  if (model.unknown_token && std::ranges::find(model.tokens, *model.unknown_token) == model.tokens.end()) {
    user_error("{}: \"unk_token\" is \"{}\", which is not in the vocabulary: copy the file again", place,
               *model.unknown_token);
  }
  return model;
}

std::string BpeTokenizer::model_json() const {
  const BpeModelParts& model = model_.parts();
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "{{\n\"type\": \"BPE\", \"dropout\": null, \"unk_token\": {}, "
                 "\"continuing_subword_prefix\": {}, \"end_of_word_suffix\": {},\n\"fuse_unk\": {}, \"byte_fallback\": "
                 "{}, \"ignore_merges\": {},\n\"vocab\": ",
                 quoted_or_null(model.unknown_token), quoted_or_null(model.continuing_subword_prefix),
                 quoted_or_null(model.end_of_word_suffix), model.fuse_unknown, model.byte_fallback,
                 model.ignore_merges);
  text += vocabulary_json(model.tokens);
  text += ",\n\"merges\": [";
  // "a b" is what every version of the library reads; a token with a space in it takes the newer form.
  const bool has_space = std::ranges::any_of(model.merges, [&](const Merge& merge) {
    return model.tokens[merge.left].find(' ') != std::string::npos ||
           model.tokens[merge.right].find(' ') != std::string::npos;
  });
  for (size_t i = 0; i < model.merges.size(); ++i) {
    const std::string &left = model.tokens[model.merges[i].left], &right = model.tokens[model.merges[i].right];
    if (i > 0) text += ',';
    if (has_space) {
      fmt::format_to(out, "\n[{}, {}]", json_quoted(left), json_quoted(right));
    } else {
      fmt::format_to(out, "\n{}", json_quoted(left + " " + right));
    }
  }
  text += "]\n}";
  return text;
}

}  // namespace brisk
