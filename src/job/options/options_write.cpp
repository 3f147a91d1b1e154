// Options as JSON, and values as the overrides that set them.
#include <brisk/job.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/parse_json.h"
#include "job/options/option_value.h"
#include "job/options/options.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Option& option) {
  if (option.is_automatic() && option.automatic_value) return "auto";
  if (const auto* items = std::get_if<std::shared_ptr<OptionItems>>(&option.field)) {
    Json list = Json::array();
    for (const std::vector<Option>& item : (*items)->items()) {
      Json given = Json::object();
      for (const Option& inner : item) {
        if (inner.value_text() != inner.default_text) given[inner.path] = json_of(inner);
      }
      const bool plain = given.size() == 1 && given.contains(item[0].path);
      list.push_back(plain ? given[item[0].path] : given);
    }
    return list;
  }
  if (!option.words.empty()) return parse_own_json(option.value_text());
  if (const auto* named = std::get_if<NamedNumbers*>(&option.field)) {
    if (!(*named)->word.empty()) return (*named)->word;
    Json numbers = Json::object();
    for (const auto& [name, number] : (*named)->numbers) numbers[name] = number;
    return numbers;
  }
  Json value;
  std::visit(
      [&](const auto& field) {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_pointer_v<Field> && !std::is_same_v<Field, NamedNumbers*>) value = *field;
      },
      option.field);
  return value;
}

}  // namespace

std::string override_text(const std::string& path, const std::string& value) {
  // What is no UTF-8 goes as it is: reading it says so.
  return fmt::format("{}={}", path, is_utf8(value) ? Json(value).dump() : value);
}

std::string override_text(const std::string& path, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (!is_utf8(value)) return override_text(path, value);
  }
  return fmt::format("{}={}", path, Json(values).dump());
}

std::string options_to_json_text(const std::vector<Option>& options) {
  Json root = Json::object();
  for (const Option& option : options) {
    Json value = json_of(option);
    if (option.section().empty()) {
      root[option.name()] = std::move(value);
    } else {
      root[option.section()][option.name()] = std::move(value);
    }
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace brisk
