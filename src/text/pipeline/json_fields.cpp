#include "text/pipeline/json_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parse_json.h"
#include "base/terminal/terminal.h"

namespace brisk {

namespace {

[[noreturn]] void wrong_field(const nlohmann::json& object, const char* key, const std::string& place,
                              const char* expected) {
  const auto found = object.find(key);
  user_error("{}: \"{}\": found {}, expected {}: the file was edited or is of another kind, copy it again", place, key,
             found == object.end() ? "nothing" : describe_json(*found), expected);
}

}  // namespace

std::string describe_json(const nlohmann::json& value) {
  return value.is_structured() ? std::string("an ") + value.type_name() : json_in_message(value);
}

std::string json_quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string json_text(const nlohmann::json& object, const char* key, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) wrong_field(object, key, place, "a text");
  return found->get<std::string>();
}

std::optional<std::string> json_text_or_null(const nlohmann::json& object, const char* key, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return json_text(object, key, place);
}

bool json_flag(const nlohmann::json& object, const char* key, const std::string& place, bool missing) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return missing;
  if (!found->is_boolean()) wrong_field(object, key, place, "true or false");
  return found->get<bool>();
}

int64_t json_integer(const nlohmann::json& object, const char* key, const std::string& place, int64_t least,
                     int64_t most) {
  const auto found = object.find(key);
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  if (found == object.end() || !found->is_number_integer()) wrong_field(object, key, place, expected.c_str());
  if (*found < least || *found > most) wrong_field(object, key, place, expected.c_str());
  return found->get<int64_t>();
}

const nlohmann::json& json_array(const nlohmann::json& object, const char* key, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) wrong_field(object, key, place, "an array");
  return *found;
}

const nlohmann::json& json_object(const nlohmann::json& object, const char* key, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) wrong_field(object, key, place, "an object");
  return *found;
}

std::string component_type(const nlohmann::json& component, const std::string& place) {
  if (!component.is_object()) {
    user_error("{}: found {}, expected an object with a \"type\": the file was edited or is of another kind", place,
               describe_json(component));
  }
  return json_text(component, "type", place);
}

TextPattern json_pattern(const nlohmann::json& object, const std::string& place) {
  const auto found = object.find("pattern");
  if (found != object.end() && found->is_object() && found->size() == 1) {
    const auto only = found->begin();
    const std::string& kind = only.key();
    const nlohmann::json& text = only.value();
    if ((kind == "String" || kind == "Regex") && text.is_string()) return {text.get<std::string>(), kind == "Regex"};
  }
  wrong_field(object, "pattern", place, "{\"String\": \"...\"} or {\"Regex\": \"...\"}");
}

void refuse_component(const std::string& place, std::string_view type, std::string_view known) {
  user_error(
      "{}: the type \"{}\" is not one that brisk reads ({}): use another tokenizer, or train one with `brisk tokenizer "
      "train`",
      place, type, known);
}

}  // namespace brisk
