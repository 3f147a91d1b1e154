// Checks a JSON value against a JSON schema, for the keywords that brisk's own schemas use: type, required, properties,
// items, enum, minimum.
//
//   EXPECT_EQ(schema_problems(value, schema), std::vector<std::string>{});
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace brisk::test {

inline bool has_type(const nlohmann::json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

inline void add_schema_problems(const nlohmann::json& value, const nlohmann::json& schema, const std::string& place,
                                std::vector<std::string>& problems) {
  if (schema.contains("type")) {
    const nlohmann::json& type = schema["type"];
    bool fits = type.is_string() && has_type(value, type.get<std::string>());
    if (type.is_array()) {
      for (const auto& each : type) fits = fits || has_type(value, each.get<std::string>());
    }
    if (!fits) problems.push_back(fmt::format("{}: {} is not of type {}", place, value.dump(), type.dump()));
  }
  if (schema.contains("enum")) {
    bool found = false;
    for (const auto& each : schema["enum"]) found = found || each == value;
    if (!found) problems.push_back(fmt::format("{}: {} is none of {}", place, value.dump(), schema["enum"].dump()));
  }
  if (schema.contains("minimum") && value.is_number() && value.get<double>() < schema["minimum"].get<double>()) {
    problems.push_back(fmt::format("{}: {} is below {}", place, value.dump(), schema["minimum"].dump()));
  }
  if (value.is_object() && schema.contains("required")) {
    for (const auto& key : schema["required"]) {
      if (!value.contains(key.get<std::string>())) {
        problems.push_back(fmt::format("{}: {} is missing", place, key.get<std::string>()));
      }
    }
  }
  if (value.is_object() && schema.contains("properties")) {
    for (const auto& [key, inner] : schema["properties"].items()) {
      if (value.contains(key)) add_schema_problems(value[key], inner, place + "." + key, problems);
    }
  }
  if (value.is_array() && schema.contains("items")) {
    for (size_t i = 0; i < value.size(); ++i) {
      add_schema_problems(value[i], schema["items"], fmt::format("{}[{}]", place, i), problems);
    }
  }
}

inline std::vector<std::string> schema_problems(const nlohmann::json& value, const nlohmann::json& schema) {
  std::vector<std::string> problems;
  add_schema_problems(value, schema, "$", problems);
  return problems;
}

}  // namespace brisk::test
