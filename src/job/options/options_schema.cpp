// The declarations as a JSON schema and as documentation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/parse_json.h"
#include "job/options/options.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

// Whether brisk chooses where nothing is given; elsewhere it does where "auto" is.
bool is_chosen_by_default(const Option& option) {
  return !option.automatic_rule.empty() && (!option.automatic_value || option.default_text == "\"auto\"");
}

Json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<int64_t>(value);
  return value;
}

Json schema_of(const Option& option) {
  Json value = Json::object();
  if (std::holds_alternative<bool*>(option.field)) {
    value["type"] = "boolean";
  } else if (std::holds_alternative<std::vector<std::string>*>(option.field)) {
    value["type"] = {"string", "array"};
    value["items"] = {{"type", "string"}, {"minLength", 1}};
  } else if (std::holds_alternative<std::vector<int64_t>*>(option.field)) {
    Json item = {{"type", "integer"}};
    if (option.least) item["minimum"] = number(*option.least);
    if (option.most) item["maximum"] = number(*option.most);
    value["anyOf"] = {item, {{"type", "array"}, {"items", item}}};
  } else if (const auto* items = std::get_if<std::shared_ptr<OptionItems>>(&option.field)) {
    Json object = {{"type", "object"}, {"additionalProperties", false}};
    const std::vector<Option> example = (*items)->example();
    for (const Option& inner : example) object["properties"][inner.path] = schema_of(inner);
    object["required"] = {example.at(0).path};
    const Json text = {{"type", "string"}, {"minLength", 1}};
    value["anyOf"] = {{{"type", "string"}}, object, {{"type", "array"}, {"items", {{"anyOf", {text, object}}}}}};
  } else if (std::holds_alternative<NamedNumbers*>(option.field)) {
    Json number = {{"type", "number"}};
    if (option.least) number[option.least_open ? "exclusiveMinimum" : "minimum"] = *option.least;
    value["anyOf"] = {{{"enum", option.choices}}, {{"type", "object"}, {"additionalProperties", number}}};
  } else if (std::holds_alternative<std::string*>(option.field)) {
    value["type"] = "string";
    for (const std::string& word : option.choices) value["enum"].push_back(word);
    for (const auto& [word, choice] : option.choice_aliases) value["enum"].push_back(word);
    if (option.has_word_for_flag()) {
      value["type"] = {"string", "boolean"};
      for (const bool flag : {false, true}) value["enum"].push_back(flag);
    }
  } else {
    value["type"] = std::holds_alternative<int64_t*>(option.field) ? "integer" : "number";
    if (option.least) value[option.least_open ? "exclusiveMinimum" : "minimum"] = number(*option.least);
    if (option.most) value[option.most_open ? "exclusiveMaximum" : "maximum"] = number(*option.most);
  }

  Json schema = Json::object();
  Json forms = Json::array();
  if (option.accepts_flag) forms.push_back({{"type", "boolean"}});
  for (const auto& [word, meaning] : option.words) forms.push_back({{"const", word}});
  if (option.automatic_value) forms.push_back({{"const", "auto"}});
  if (!option.object_keys.empty()) {
    Json object = {{"type", "object"}, {"additionalProperties", false}};
    for (const auto& [name, path] : option.object_keys) {
      object["properties"][name] = {{"type", {"string", "array"}}, {"items", {{"type", "string"}, {"minLength", 1}}}};
      object["required"].push_back(name);
    }
    forms.push_back(object);
  }
  if (forms.empty()) {
    schema = value;
  } else {
    forms.insert(forms.begin(), value);
    schema["anyOf"] = forms;
  }
  std::string description = option.meaning();
  if (!option.unit.empty()) description += fmt::format(" ({})", option.unit);
  if (!option.automatic_rule.empty()) {
    description += fmt::format("; {}: {}", is_chosen_by_default(option) ? "default" : "auto", option.automatic_rule);
  }
  if (const std::string others = option.other_defaults_text(); !others.empty())
    description += "; default" + others.substr(1);
  schema["description"] = description;
  schema["default"] = parse_own_json(option.default_text);
  return schema;
}

std::string pointer_to(const Option& option) {
  return option.section().empty() ? "#/properties/" + option.name()
                                  : fmt::format("#/properties/{}/properties/{}", option.section(), option.name());
}

// A cell of a Markdown table: | would end it.
std::string cell(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '|') result += '\\';
    result += letter;
  }
  return result;
}

std::string type_name(const Option& option) {
  if (std::holds_alternative<bool*>(option.field)) return "true or false";
  if (std::holds_alternative<int64_t*>(option.field)) {
    if (option.accepts_flag) return "integer, true or false";
    std::string name = "integer";
    for (const auto& [word, meaning] : option.words) name += fmt::format(" or `{}`", word);
    return name;
  }
  if (std::holds_alternative<double*>(option.field)) return "number";
  if (std::holds_alternative<std::vector<std::string>*>(option.field)) return "string or list";
  if (std::holds_alternative<std::vector<int64_t>*>(option.field)) return "integer or list";
  if (std::holds_alternative<std::shared_ptr<OptionItems>>(option.field)) return "string, object or list of these";
  if (std::holds_alternative<NamedNumbers*>(option.field)) return "choice, or a number for each name";
  return option.choices.empty() ? "string" : "choice";
}

std::string documented_default(const Option& option) {
  std::string text = "`" + option.default_text + "`" + option.other_defaults_text();
  if (is_chosen_by_default(option)) return option.automatic_rule + option.other_defaults_text();
  if (!option.automatic_rule.empty()) return fmt::format("{}; `auto`: {}", text, option.automatic_rule);
  return option.default_text == "\"\"" || option.default_text == "[]" ? "–" : text;
}

std::string table_row(const Option& option, const std::string& name) {
  std::string allowed;
  if (!option.choices.empty()) {
    allowed = fmt::format("`{}`", fmt::join(option.choices, "`, `"));
    for (const auto& [word, choice] : option.choice_aliases) allowed += fmt::format("; `{}` is `{}`", word, choice);
  } else {
    allowed = option.range();
  }
  if (!option.unit.empty()) allowed += fmt::format("{}in {}", allowed.empty() ? "" : ", ", option.unit);
  std::vector<std::string> spellings;
  for (const std::string& alias : option.aliases) {
    // Elsewhere in the file: the whole path tells where.
    const bool same_section = alias.find('.') == std::string::npos;
    spellings.push_back("`" + (same_section ? alias : option.alias_path(alias)) + "`" +
                        (alias.starts_with('.') ? " at the top" : ""));
  }
  for (const Option::Flag& flag : option.flags)
    spellings.push_back(fmt::format("`{}: true` for `{}`", flag.name, flag.value));
  return fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", name, type_name(option), cell(documented_default(option)),
                     cell(allowed), cell(option.meaning()), fmt::join(spellings, ", "));
}

}  // namespace

std::string options_schema(const std::vector<Option>& options, const std::string& title,
                           const std::vector<std::pair<std::string, std::string>>& sections) {
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}, {"type", "object"}};
  root["properties"]["$schema"] = {{"type", "string"}};
  for (const auto& [section, description] : sections) {
    Json& place = section.empty() ? root : root["properties"][section];
    place["description"] = description;
    place["type"] = "object";
    place["additionalProperties"] = false;
  }
  const auto properties_of = [&](const std::string& path) -> Json& {
    const size_t dot = path.find('.');
    return dot == std::string::npos ? root["properties"] : root["properties"][path.substr(0, dot)]["properties"];
  };
  const auto leaf = [](const std::string& path) { return path.substr(path.find('.') + 1); };  // npos + 1 is 0
  for (const Option& option : options) properties_of(option.path)[option.name()] = schema_of(option);
  for (const Option& option : options) {
    for (const std::string& alias : option.aliases) {
      const std::string path = option.alias_path(alias);
      properties_of(path)[leaf(path)] = {{"$ref", pointer_to(option)},
                                         {"description", "another spelling of " + option.path}};
    }
    for (const Option::Flag& flag : option.flags) {
      const std::string path = option.alias_path(flag.name);
      properties_of(path)[leaf(path)] = {{"type", "boolean"},
                                         {"description", fmt::format("true: {} is {}", option.path, flag.value)}};
    }
  }
  return root.dump(2) + "\n";
}

std::string options_markdown(const std::vector<Option>& options,
                             const std::vector<std::pair<std::string, std::string>>& sections) {
  std::string text;
  for (const auto& [section, description] : sections) {
    text += section.empty() ? "## The top of the file\n\n" : fmt::format("## `{}`\n\n{}\n\n", section, description);
    text += "| key | type | default | allowed | meaning | other spellings |\n|---|---|---|---|---|---|\n";
    for (const Option& option : options) {
      if (option.section() != section) continue;
      text += table_row(option, option.name());
      if (const auto* items = std::get_if<std::shared_ptr<OptionItems>>(&option.field)) {
        for (const Option& inner : (*items)->example()) text += table_row(inner, option.name() + "[]." + inner.path);
      }
    }
    text += "\n";
  }
  text.pop_back();
  return text;
}

}  // namespace brisk
