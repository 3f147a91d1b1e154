#include "text/post_processor.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/json_fields.h"

namespace brisk {

namespace {

void check_size(const TextTemplate& around, const std::string& place) {
  constexpr size_t kMost = 100;  // a list of specials, each of which is a list, can name more than any memory holds
  if (around.before.size() + around.after.size() > kMost) {
    user_error("{}: more than {} special tokens around a text", place, kMost);
  }
}

void read_template(const nlohmann::json& component, const std::string& place, TextTemplate& around) {
  const nlohmann::json& specials = json_object(component, "special_tokens", place);
  bool behind_text = false;
  for (const nlohmann::json& part : json_array(component, "single", place)) {
    if (part.is_object() && part.contains("Sequence")) {
      behind_text = true;
      continue;
    }
    if (!part.is_object()) user_error("{}: \"single\": found {}, expected objects", place, describe_json(part));
    const std::string name = json_text(json_object(part, "SpecialToken", place), "id", place);
    for (const nlohmann::json& token : json_array(json_object(specials, name.c_str(), place), "tokens", place)) {
      if (!token.is_string()) user_error("{}: \"tokens\": found {}, expected texts", place, describe_json(token));
      (behind_text ? around.after : around.before).push_back(token.get<std::string>());
      check_size(around, place);
    }
  }
}

// ["</s>", 2]
std::string named_token(const nlohmann::json& component, const char* key, const std::string& place) {
  const nlohmann::json& pair = json_array(component, key, place);
  if (pair.size() != 2 || !pair[0].is_string()) {
    user_error("{}: \"{}\": expected a token and its id, such as [\"</s>\", 2]", place, key);
  }
  return pair[0].get<std::string>();
}

void read_into(const nlohmann::json& component, const std::string& place, int depth, TextTemplate& around) {
  const std::string type = component_type(component, place);
  if (type == "Sequence") {
    if (depth >= kDeepestSequence) user_error("{}: sequences nested more than {} deep", place, kDeepestSequence);
    for (const nlohmann::json& part : json_array(component, "processors", place)) {
      read_into(part, place, depth + 1, around);
    }
  } else if (type == "TemplateProcessing") {
    read_template(component, place, around);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    around.before.insert(around.before.begin(), named_token(component, "cls", place));
    around.after.push_back(named_token(component, "sep", place));
    check_size(around, place);
  } else if (type != "ByteLevel") {  // which only moves offsets
    refuse_component(place, type, "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence");
  }
}

}  // namespace

TextTemplate read_text_template(const nlohmann::json& component, const std::string& place) {
  TextTemplate around;
  if (!component.is_null()) read_into(component, place, 0, around);
  return around;
}

}  // namespace brisk
