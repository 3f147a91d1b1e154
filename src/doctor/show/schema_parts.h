// The words that JSON schemas of the doctor's output are made of.
//
//   schema_of_object({{"parameters", schema_of_count()}, {"notes", schema_of_texts()}});
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

namespace brisk {

inline nlohmann::ordered_json schema_of_type(const char* name) { return {{"type", name}}; }
inline nlohmann::ordered_json schema_or_null(nlohmann::ordered_json schema) {
  schema["type"] = {schema["type"], "null"};
  return schema;
}
inline nlohmann::ordered_json schema_with_words(nlohmann::ordered_json schema, const char* description) {
  schema["description"] = description;
  return schema;
}
inline nlohmann::ordered_json schema_of_list(nlohmann::ordered_json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}
inline nlohmann::ordered_json schema_from_zero(const char* type_name) { return {{"type", type_name}, {"minimum", 0}}; }

inline nlohmann::ordered_json schema_of_object(
    std::initializer_list<std::pair<const char*, nlohmann::ordered_json>> properties) {
  nlohmann::ordered_json schema = {{"type", "object"},
                                   {"properties", nlohmann::ordered_json::object()},
                                   {"required", nlohmann::ordered_json::array()}};
  for (const auto& [key, value] : properties) {
    schema["properties"][key] = value;
    schema["required"].push_back(key);
  }
  return schema;
}

inline nlohmann::ordered_json schema_of_text() { return schema_of_type("string"); }
inline nlohmann::ordered_json schema_of_flag() { return schema_of_type("boolean"); }
inline nlohmann::ordered_json schema_of_number() { return schema_of_type("number"); }
inline nlohmann::ordered_json schema_of_count() { return schema_from_zero("integer"); }
inline nlohmann::ordered_json schema_of_texts() { return schema_of_list(schema_of_text()); }
inline nlohmann::ordered_json schema_of_measure() { return schema_or_null(schema_from_zero("number")); }
inline nlohmann::ordered_json schema_of_bytes() { return schema_or_null(schema_of_count()); }
inline nlohmann::ordered_json schema_of_text_or_null() { return schema_or_null(schema_of_text()); }
inline nlohmann::ordered_json schema_of_number_or_null() { return schema_or_null(schema_of_number()); }
inline nlohmann::ordered_json schema_of_anything() { return nlohmann::ordered_json::object(); }

}  // namespace brisk
