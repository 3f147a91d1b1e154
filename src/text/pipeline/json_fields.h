// Reads fields of a JSON object from a tokenizer file; errors name the file and the field.
//
//   const std::string replacement = json_text(content, "replacement", "tokenizer.json: pre_tokenizer");
//   const bool split = json_flag(content, "split", place, /*missing=*/true);
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace brisk {

// A missing or null field is `missing` where that is given, a UserError otherwise; so is one of another type.
std::string json_text(const nlohmann::json& object, const char* key, const std::string& place);
std::optional<std::string> json_text_or_null(const nlohmann::json& object, const char* key, const std::string& place);
bool json_flag(const nlohmann::json& object, const char* key, const std::string& place, bool missing);
int64_t json_integer(const nlohmann::json& object, const char* key, const std::string& place, int64_t least,
                     int64_t most);
const nlohmann::json& json_array(const nlohmann::json& object, const char* key, const std::string& place);
const nlohmann::json& json_object(const nlohmann::json& object, const char* key, const std::string& place);

// The "type" of a component of a tokenizer file, which has to be an object.
std::string component_type(const nlohmann::json& component, const std::string& place);

// The two kinds of "pattern": {"String": "x"} and {"Regex": "x+"}.
struct TextPattern {
  std::string text;
  bool is_regex;
};
TextPattern json_pattern(const nlohmann::json& object, const std::string& place);

// A value for an error message: the beginning of it, or what it is.
std::string describe_json(const nlohmann::json& value);

// A text as JSON writes it.
std::string json_quoted(const std::string& text);

[[noreturn]] void refuse_component(const std::string& place, std::string_view type, std::string_view known);

// Sequences may hold sequences, to this depth.
inline constexpr int kDeepestSequence = 8;
// And have so many steps; no tokenizer has ten.
inline constexpr size_t kMostSteps = 100;

}  // namespace brisk
