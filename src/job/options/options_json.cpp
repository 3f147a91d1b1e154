// Reading and writing options as JSON. All problems of a file are collected, so that one run names them all.
#include <brisk/job.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parse_json.h"
#include "base/terminal/terminal.h"
#include "base/text/printable.h"
#include "base/text/spelling.h"
#include "job/options/options.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kLargestInteger = 9007199254740992.0;  // 2^53: beyond it a double is not exact, and no option needs it

// The slip behind a value of the wrong type, or the default as an example.
std::string fix_for(const Option& option, const Json& value) {
  const std::string name = option.name();
  const bool wants_bare = std::holds_alternative<bool*>(option.field) ||
                          std::holds_alternative<int64_t*>(option.field) ||
                          std::holds_alternative<double*>(option.field);
  if (wants_bare && value.is_string()) {
    const Json inner = parse_json_or_discard(value.get<std::string>());
    const bool is_flag = std::holds_alternative<bool*>(option.field);
    if (is_flag ? inner.is_boolean() : inner.is_number()) {
      return fmt::format("remove the quotation marks: \"{}\": {}", name, inner.dump());
    }
  }
  if (!wants_bare && (value.is_number() || value.is_boolean())) {
    return fmt::format("put it in quotation marks: \"{}\": \"{}\"", name, value.dump());
  }
  if (option.automatic_value && value.is_number() && value == *option.automatic_value) {
    return fmt::format("to let brisk choose, write \"{}\": \"auto\"{}", name,
                       option.default_text == "\"auto\"" ? ", or leave it out" : "");
  }
  if (std::holds_alternative<int64_t*>(option.field) && !option.most && value.is_number() &&
      std::abs(value.get<double>()) > kLargestInteger) {
    return fmt::format("the largest is {:.0f}", kLargestInteger);
  }
  if (!option.choices.empty() && value.is_string()) {
    std::vector<std::string> words = option.choices;
    for (const auto& [word, choice] : option.choice_aliases) words.push_back(word);
    const std::string nearest = nearest_word(value.get<std::string>(), words);
    if (!nearest.empty()) return fmt::format("did you mean \"{}\"?", nearest);
  }
  if (option.default_text == "\"\"" || option.default_text == "[]") return "leave it out for the default";
  return fmt::format("leave it out for the default, {}", option.default_text);
}

bool is_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

bool in_range(const Option& option, double value) {
  if (std::isnan(value)) return false;
  if (option.least && (option.least_open ? value <= *option.least : value < *option.least)) return false;
  if (option.most && (option.most_open ? value >= *option.most : value > *option.most)) return false;
  return true;
}

// Puts the value into the option's field; false where the type or the range does not fit.
bool assign(const Option& option, const Json& value, const std::string& source, std::vector<std::string>& notes) {
  if (option.automatic_value && value == "auto") {
    if (auto* const* number = std::get_if<int64_t*>(&option.field))
      **number = static_cast<int64_t>(*option.automatic_value);
    if (auto* const* number = std::get_if<double*>(&option.field)) **number = *option.automatic_value;
    return true;
  }
  if (auto* const* flag = std::get_if<bool*>(&option.field)) {
    if (!value.is_boolean()) return false;
    **flag = value.get<bool>();
    return true;
  }
  if (auto* const* number = std::get_if<int64_t*>(&option.field)) {
    for (const auto& [word, meaning] : option.words) {
      if (value != word) continue;
      **number = meaning;
      return true;
    }
    if (option.accepts_flag && value.is_boolean()) {
      **number = value.get<bool>() ? 1 : 0;
      return true;
    }
    if (!value.is_number()) return false;
    // 1e3 and 32.0 are integers to people.
    const double exact = value.get<double>();
    if (exact != std::floor(exact) || std::abs(exact) > kLargestInteger || !in_range(option, exact)) return false;
    **number = value.is_number_integer() ? value.get<int64_t>() : static_cast<int64_t>(exact);
    return true;
  }
  if (auto* const* number = std::get_if<double*>(&option.field)) {
    if (!value.is_number() || !in_range(option, value.get<double>())) return false;
    **number = value.get<double>();
    return true;
  }
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&option.field)) {
    std::vector<std::string> items;
    if (value.is_string()) {
      if (!value.get<std::string>().empty()) items.push_back(value.get<std::string>());
    } else {
      if (!value.is_array()) return false;
      for (const Json& item : value) {
        if (!item.is_string() || item.get<std::string>().empty()) return false;
        items.push_back(item.get<std::string>());
      }
    }
    **list = std::move(items);
    return true;
  }
  if (!value.is_string()) return false;
  std::string word = value.get<std::string>();
  if (!option.choices.empty()) {
    for (const auto& [other, choice] : option.choice_aliases) {
      if (word != other) continue;
      notes.push_back(fmt::format("{}: {} \"{}\" is \"{}\" here", source, option.path, other, choice));
      word = choice;
    }
    if (std::find(option.choices.begin(), option.choices.end(), word) == option.choices.end()) return false;
  }
  *std::get<std::string*>(option.field) = std::move(word);
  return true;
}

// Gives the option's field the value again that it has now.
std::function<void()> way_back(const Option& option) {
  return std::visit(
      [](const auto& field) -> std::function<void()> {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(field)>>) {
          return [field, value = *field] { *field = value; };
        } else {
          return [field] { field->clear(); };  // lists of items begin empty
        }
      },
      option.field);
}

class Reader {
 public:
  explicit Reader(const std::vector<Option>& options) : options_(options) {
    const auto add = [&](const std::string& key, Target target) {
      BRISK_CHECK(keys_.emplace(key, target).second, "the key {} is declared twice", key);
    };
    for (const Option& option : options) {
      add(option.path, {&option, nullptr});
      defaults_.emplace(option.path, way_back(option));
      for (const std::string& alias : option.aliases) {
        const std::string path = option.alias_path(alias);
        add(path, {&option, nullptr});
        if (const size_t dot = path.find('.'); dot != std::string::npos) sections_.insert(path.substr(0, dot));
      }
      for (const auto& [name, value] : option.flags) add(option.alias_path(name), {&option, &value});
      if (!option.section().empty()) sections_.insert(option.section());
    }
  }

  void read_text(const std::string& text, const std::string& source) {
    source_ = source;
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
      user_error("{}: the file is empty; expected a JSON object, at least {{}}", source);
    }
    const Json root = parse_job_json(text, source, problems_);
    if (!root.is_object()) {
      user_error("{}: found {}, expected an object {{...}} with the sections {}", source, json_in_message(root),
                 fmt::join(sections_, ", "));
    }
    for (const auto& [key, value] : root.items()) {
      if (key == "$schema") continue;  // editors look there for the schema
      if (!sections_.contains(key)) {
        read_key(key, value);
      } else if (value.is_null()) {
        continue;  // left out, as any key
      } else if (!value.is_object()) {
        problems_.push_back(
            fmt::format("{}: {}: found {}, expected an object {{...}}; put the section's keys inside it", source, key,
                        json_in_message(value)));
      } else {
        for (const auto& [name, item] : value.items()) read_key(key + "." + name, item);
      }
    }
  }

  void read_override(const std::string& text) {
    source_ = "--set " + text;
    spelled_.clear();  // an override replaces whatever spelling the file used
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      const auto number = std::find_if(options_.begin(), options_.end(), [](const Option& option) {
        return std::holds_alternative<int64_t*>(option.field);
      });
      const Option& example = number != options_.end() ? *number : options_.back();
      problems_.push_back(fmt::format("{}: expected key=value; write for example --set {}={}", source_, example.path,
                                      example.default_text));
      return;
    }
    const std::string key = text.substr(0, equals), raw = text.substr(equals + 1);
    if (!is_utf8(text)) {
      problems_.push_back(
          fmt::format("--set {}: the value is no UTF-8, which no job can hold; rename what it names", key));
      return;
    }
    Json value = parse_json_or_discard(raw);
    if (value.is_discarded()) value = raw;
    const auto found = keys_.find(key);
    if (found != keys_.end() && value.is_null()) {  // left out, whatever the file says
      defaults_.at(found->second.option->path)();
      result_.given.erase(found->second.option->path);
      result_.overridden.erase(found->second.option->path);
      return;
    }
    if (found != keys_.end() && found->second.flag_value == nullptr) {
      // A file called 2024 is a number only to JSON.
      const Option& option = *found->second.option;
      if (std::holds_alternative<std::string*>(option.field) && !value.is_string()) value = raw;
      if (std::holds_alternative<std::vector<std::string>*>(option.field) && !value.is_string() && !value.is_array())
        value = raw;
      if (std::holds_alternative<std::shared_ptr<OptionItems>>(option.field) && value.is_primitive()) value = raw;
    }
    overriding_ = true;
    read_key(key, value);
  }

  ReadResult finish() {
    if (problems_.empty()) return std::move(result_);
    throw UserError(fmt::format("{}{}", fmt::join(problems_, "\n"),
                                problems_.size() < kMostProblems ? "" : "\n... what follows was not looked at"));
  }

 private:
  struct Target {
    const Option* option;
    const std::string* flag_value;  // of a key such as "bf16": true
  };

  void read_key(const std::string& key, const Json& value) {
    if (problems_.size() >= kMostProblems) return;
    const auto found = keys_.find(key);
    if (found == keys_.end()) {
      problems_.push_back(unknown_key(key, value));
      return;
    }
    const Option& option = *found->second.option;
    if (value.is_null()) return;  // null is "left out"
    Json meant = value;
    if (found->second.flag_value != nullptr) {
      if (!value.is_boolean()) {
        problems_.push_back(fmt::format("{}: {}: found {}, expected true or false; write \"{}\": \"{}\" instead",
                                        source_, key, json_in_message(value), option.name(),
                                        *found->second.flag_value));
        return;
      }
      if (!value.get<bool>()) return;
      meant = *found->second.flag_value;
    }
    const auto [spelling, first] = spelled_.emplace(option.path, key);
    if (!first) {
      problems_.push_back(fmt::format("{}: {} and {} are the same option, and both are given; remove one of them",
                                      source_, spelling->second, key));
      return;
    }
    if (!read_value(option, meant)) {
      problems_.push_back(fmt::format("{}: {}: found {}, expected {}; {}", source_, key, json_in_message(value),
                                      option.expected(), fix_for(option, value)));
      return;
    }
    result_.given.insert(option.path);
    if (overriding_) result_.overridden.insert(option.path);
    if (found->second.flag_value != nullptr) {
      result_.notes.push_back(fmt::format("{}: {} is {} = {} here", source_, key, option.path, option.value_text()));
    } else if (key != option.path) {
      result_.notes.push_back(fmt::format("{}: {} is {} here", source_, key, option.path));
    }
  }

  // Each item by a reader of its own, which knows the item's options. False where `value` is no list at all.
  bool read_items(const Option& option, OptionItems& items, const Json& value) {
    items.clear();
    const bool many = value.is_array();
    if (!many && !value.is_string() && !value.is_object()) return false;
    if (value.is_string() && value.get<std::string>().empty()) return true;
    for (size_t i = 0; i < (many ? value.size() : 1) && problems_.size() < kMostProblems; ++i) {
      const Json& item = many ? value[i] : value;
      const std::string place =
          many ? fmt::format("{}: {}[{}]", source_, option.path, i) : source_ + ": " + option.path;
      if (!item.is_object() && !(item.is_string() && !item.get<std::string>().empty())) {
        problems_.push_back(fmt::format("{}: found {}, expected {}", place, json_in_message(item), option.expected()));
        continue;
      }
      const std::vector<Option> declared = items.append();
      Reader reader(declared);
      reader.source_ = place;
      if (item.is_string()) {
        reader.read_key(declared[0].path, item);
      } else {
        for (const auto& [key, inner] : item.items()) reader.read_key(key, inner);
      }
      if (declared[0].value_text() == declared[0].default_text) {
        reader.problems_.push_back(fmt::format("{}: {} is missing", place, declared[0].path));
      }
      problems_.insert(problems_.end(), reader.problems_.begin(), reader.problems_.end());
      result_.notes.insert(result_.notes.end(), reader.result_.notes.begin(), reader.result_.notes.end());
    }
    return true;
  }

  bool read_value(const Option& option, const Json& value) {
    if (const auto* items = std::get_if<std::shared_ptr<OptionItems>>(&option.field)) {
      return read_items(option, **items, value);
    }
    return assign(option, value, source_, result_.notes);
  }

  // "max_steps=3" of {"max_steps": 3}; else a key that the section has.
  std::string first_of(const std::string& section, const Json& value) const {
    if (value.is_object() && !value.empty())
      return fmt::format("{}={}", printable(value.begin().key()), json_in_message(*value.begin()));
    for (const Option& option : options_) {
      if (option.section() == section) return option.name() + "=...";
    }
    return "";
  }

  std::string unknown_key(const std::string& key, const Json& value) const {
    const std::string start = fmt::format("{}: {}: unknown key; ", source_, printable(key));
    if (sections_.contains(key)) {  // in --set
      return start + fmt::format("{} is a section: set one of its keys, such as {}.{}", key, key, first_of(key, value));
    }
    if (value.is_object() && key.find('.') == std::string::npos) {
      const std::string section = nearest_word(key, {sections_.begin(), sections_.end()});
      if (!section.empty()) return start + fmt::format("did you mean the section {}?", section);
    }
    const std::string nearest = nearest_option(options_, key);
    if (!nearest.empty()) return start + fmt::format("did you mean {}?", nearest);
    const std::string section = key.find('.') == std::string::npos ? "" : key.substr(0, key.find('.'));
    std::vector<std::string> known;
    for (const Option& option : options_) {
      if (option.section() == section) known.push_back(option.name());
    }
    if (section.empty()) known.insert(known.end(), sections_.begin(), sections_.end());
    return start + fmt::format("{} has {}", section.empty() ? "the file" : printable(section), fmt::join(known, ", "));
  }

  const std::vector<Option>& options_;
  std::map<std::string, Target> keys_;
  std::map<std::string, std::function<void()>> defaults_;
  std::set<std::string> sections_;
  std::string source_;
  bool overriding_ = false;
  std::map<std::string, std::string> spelled_;  // canonical path to the spelling the current source used
  std::vector<std::string> problems_;
  ReadResult result_;
};

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
  Json value;
  std::visit(
      [&](const auto& field) {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(field)>>) value = *field;
      },
      option.field);
  return value;
}

}  // namespace

ReadResult read_options(const std::vector<Option>& options, const std::string& json_text,
                        const std::string& source_name, const std::vector<std::string>& overrides) {
  Reader reader(options);
  reader.read_text(json_text, source_name);
  for (const std::string& text : overrides) reader.read_override(text);
  return reader.finish();
}

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
