#include "text/pipeline/post_processor.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "text/pipeline/json_fields.h"

namespace brisk {

namespace {

// A list of specials, each of which is a list, could name more than any memory holds.
void check_size(size_t specials, const std::string& place) {
  constexpr size_t kMost = 100;
  if (specials > kMost) user_error("{}: more than {} special tokens around a text", place, kMost);
}

// A part of TemplateProcessing's "single" and "pair": a text, or special tokens.
struct Part {
  std::string text;  // "A" or "B"; empty: special tokens
  std::vector<std::string> tokens;
  int64_t type = 0;
};

std::vector<Part> read_parts(const nlohmann::json& component, const char* key, const std::string& place) {
  constexpr int64_t kMostTypes = 1 << 16;
  const nlohmann::json& specials = json_object(component, "special_tokens", place);
  std::vector<Part> parts;
  size_t named = 0;
  for (const nlohmann::json& entry : json_array(component, key, place)) {
    if (!entry.is_object()) user_error("{}: \"{}\": found {}, expected objects", place, key, describe_json(entry));
    const bool is_text = entry.contains("Sequence");
    const nlohmann::json& content = json_object(entry, is_text ? "Sequence" : "SpecialToken", place);
    const std::string name = json_text(content, "id", place);
    Part part;
    if (content.contains("type_id")) part.type = json_integer(content, "type_id", place, 0, kMostTypes);
    if (is_text) {
      part.text = name;
    } else {
      for (const nlohmann::json& token : json_array(json_object(specials, name.c_str(), place), "tokens", place)) {
        if (!token.is_string()) user_error("{}: \"tokens\": found {}, expected texts", place, describe_json(token));
        part.tokens.push_back(token.get<std::string>());
        check_size(++named, place);
      }
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

void append(const Part& part, std::vector<std::string>& tokens) {
  tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
}

void read_single(const std::vector<Part>& parts, NamedTemplate& single) {
  bool behind_text = false;
  for (const Part& part : parts) {
    append(part, behind_text ? single.suffix : single.prefix);
    behind_text = behind_text || !part.text.empty();
  }
}

// Specials, A, specials, B, specials; all of type 0 but B and what follows it, which are of one type. Returns what is
// different about it, or nothing.
std::string read_pair(const std::vector<Part>& parts, NamedTemplate& pair) {
  pair = {};
  std::optional<int64_t> second_type;
  std::vector<std::string>* tokens = &pair.prefix;
  for (const Part& part : parts) {
    if (part.text == "A" && tokens == &pair.prefix) {
      tokens = &pair.middle;
    } else if (part.text == "B" && tokens == &pair.middle) {
      tokens = &pair.suffix;
      second_type = part.type;
    } else if (!part.text.empty()) {
      return "its texts are not A and then B, once each";
    }
    if (part.type != second_type.value_or(0)) return "its token types do not change at B alone";
    append(part, *tokens);
  }
  if (!second_type) return "it does not have both texts";
  if (*second_type > 1) return "it has more than two token types";
  pair.second_type = *second_type == 1;
  return "";
}

// ["</s>", 2]
std::string named_token(const nlohmann::json& component, const char* key, const std::string& place) {
  const nlohmann::json& pair = json_array(component, key, place);
  if (pair.size() != 2 || !pair[0].is_string()) {
    user_error("{}: \"{}\": expected a token and its id, such as [\"</s>\", 2]", place, key);
  }
  return pair[0].get<std::string>();
}

void read_into(const nlohmann::json& component, const std::string& place, int depth, TextTemplates& around) {
  const std::string type = component_type(component, place);
  if (type == "Sequence") {
    if (depth >= kDeepestSequence)
      user_error("{}: sequences are nested more than {} levels deep", place, kDeepestSequence);
    for (const nlohmann::json& part : json_array(component, "processors", place)) {
      read_into(part, place, depth + 1, around);
    }
  } else if (type == "TemplateProcessing") {
    read_single(read_parts(component, "single", place), around.single);
    check_size(around.single.prefix.size() + around.single.suffix.size(), place);
    around.pair_problem =
        component.contains("pair") ? read_pair(read_parts(component, "pair", place), around.pair) : "there is none";
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const std::string first = named_token(component, "cls", place), last = named_token(component, "sep", place);
    around.single.prefix.insert(around.single.prefix.begin(), first);
    around.single.suffix.push_back(last);
    check_size(around.single.prefix.size() + around.single.suffix.size(), place);
    const bool is_bert = type == "BertProcessing";
    around.pair = {{first}, is_bert ? std::vector{last} : std::vector{last, last}, {last}, is_bert};
  } else if (type != "ByteLevel") {  // which only moves offsets
    refuse_component(place, type, "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence");
  }
}

}  // namespace

TextTemplates read_text_templates(const nlohmann::json& component, const std::string& place) {
  TextTemplates around;
  if (!component.is_null()) read_into(component, place, 0, around);
  return around;
}

}  // namespace brisk
