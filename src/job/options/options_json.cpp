// Reading options from JSON. All problems of a file are collected, so that one run names them all.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parse_json.h"
#include "base/text/printable.h"
#include "base/text/spelling.h"
#include "job/options/option_value.h"
#include "job/options/options.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

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

std::string leaf_of(const std::string& key) { return key.substr(key.rfind('.') + 1); }  // npos + 1 is 0

class Reader {
 public:
  explicit Reader(const std::vector<Option>& options, const std::vector<ForeignKey>* foreign_keys = nullptr)
      : options_(options) {
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
      for (const Option::Flag& flag : option.flags) add(option.alias_path(flag.name), {&option, &flag});
      if (!option.section().empty()) sections_.insert(option.section());
    }
    for (const auto& [key, target] : keys_) {
      const auto [place, first] = keys_without_section_.emplace(leaf_of(key), &target);
      if (!first && place->second->option != target.option) place->second = nullptr;  // two options of that name
    }
    if (foreign_keys == nullptr) return;
    for (const ForeignKey& key : *foreign_keys) {
      BRISK_CHECK(foreign_keys_.emplace(key.name, &key).second, "the key {} is answered twice", key.name);
      BRISK_CHECK(!keys_without_section_.contains(key.name), "the key {} is an option, too", key.name);
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
    end_source();
    spelled_.clear();  // an override replaces whatever spelling the file used
  }

  void read_override(const std::string& text) {
    source_ = "--set " + text;
    overriding_ = true;
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
      problems_.push_back(fmt::format(
          "--set {}: the value is not valid UTF-8, which JSON requires; rename the file or folder it names", key));
      return;
    }
    Json value = parse_json_or_discard(raw);
    if (value.is_discarded()) value = raw;
    const Target* target = target_of(key);
    if (target != nullptr && value.is_null()) {  // left out, whatever the file says
      take_back(*target->option);
      spelled_.erase(target->option->path);
      return;
    }
    if (target != nullptr && target->flag == nullptr) {
      // A file called 2024 is a number only to JSON.
      const Option& option = *target->option;
      if (std::holds_alternative<std::string*>(option.field) && !value.is_string()) value = raw;
      if (std::holds_alternative<std::vector<std::string>*>(option.field) && !value.is_string() && !value.is_array())
        value = raw;
      if (std::holds_alternative<std::shared_ptr<OptionItems>>(option.field) && value.is_primitive() &&
          !value.is_string())
        value = raw;
    }
    read_key(key, value);
    end_source();
  }

  ReadResult finish() {
    if (!problems_.empty()) {
      say_what_is_without();
      throw UserError(fmt::format("{}{}", fmt::join(problems_, "\n"),
                                  problems_.size() < kMostProblems ? "" : "\n... further problems are not listed"));
    }
    tell_spellings();
    for (const auto& [reason, keys] : ignored_) {
      result_.notes.push_back(fmt::format("{}: ignored: {}: {}", keys.first, fmt::join(keys.second, ", "), reason));
    }
    return std::move(result_);
  }

 private:
  struct Target {
    const Option* option;
    const Option::Flag* flag;  // of a key such as "bf16": true
  };

  // Null: there is no such option. A key at the top may do without its section.
  const Target* target_of(const std::string& key) const {
    if (const auto found = keys_.find(key); found != keys_.end()) return &found->second;
    if (key.find('.') != std::string::npos || sections_.contains(key)) return nullptr;
    const auto found = keys_without_section_.find(key);
    return found == keys_without_section_.end() ? nullptr : found->second;
  }

  void take_back(const Option& option) {
    defaults_.at(option.path)();
    result_.given.erase(option.path);
    result_.overridden.erase(option.path);
  }

  void read_key(const std::string& key, const Json& value) {
    if (problems_.size() >= kMostProblems) return;
    const Target* target = target_of(key);
    if (target == nullptr) return read_foreign_key(key, value);
    const Option& option = *target->option;
    if (value.is_null()) return;  // null is "left out"
    if (is_object_of(option, value)) return read_object(option, key, value);
    Json meant = value;
    if (target->flag != nullptr) {
      if (!value.is_boolean()) {
        problems_.push_back(fmt::format("{}: {}: found {}, expected true or false; write \"{}\": \"{}\" instead",
                                        source_, key, json_in_message(value), option.name(), target->flag->value));
        return;
      }
      if (!value.get<bool>()) return flags_off_.push_back({key, &option, target->flag});
      meant = target->flag->value;
    }
    const auto [spelling, first] = spelled_.emplace(option.path, key);
    if (!first && (spelling->second != key || !overriding_)) {
      problems_.push_back(fmt::format("{}: {} and {} are the same option, and both are given; remove one of them",
                                      overriding_ ? "the command line" : source_, spelling->second, key));
      return;
    }
    if (!read_value(option, meant)) {
      // What the option is without it may depend on keys that come later.
      unfit_.push_back({problems_.size(), &option, value});
      problems_.push_back(
          fmt::format("{}: {}: found {}, expected {}; ", source_, key, json_in_message(value), option.expected()));
      return;
    }
    take(option);
    if (target->flag != nullptr) {
      result_.notes.push_back(fmt::format("{}: read {} as {} = {}", source_, key, option.path, option.value_text()));
    } else if (key != option.path) {
      other_spellings_.push_back({source_, key, option.path});
      result_.spelled.insert(key);
    }
  }

  static const std::string* path_of(const Option& option, const std::string& key) {
    const auto found = std::ranges::find(option.object_keys, key, &std::pair<std::string, std::string>::first);
    return found == option.object_keys.end() ? nullptr : &found->second;
  }
  static bool is_object_of(const Option& option, const Json& value) {
    if (!value.is_object()) return false;
    for (const auto& [name, inner] : value.items()) {
      if (path_of(option, name) != nullptr) return true;
    }
    return false;
  }
  // Of Option::object_of.
  void read_object(const Option& option, const std::string& key, const Json& value) {
    for (const auto& [name, path] : option.object_keys) {
      if (!value.contains(name) || value[name].is_null() || value[name].is_object()) {
        return problems_.push_back(fmt::format("{}: {}: {}, expected {} with a path for each", source_, key,
                                               value.contains(name)
                                                   ? fmt::format("{}: found {}", name, json_in_message(value[name]))
                                                   : fmt::format("no \"{}\" in it", name),
                                               object_text(option)));
      }
    }
    for (const auto& [name, inner] : value.items()) {
      const std::string* path = path_of(option, name);
      if (path == nullptr) {
        return problems_.push_back(fmt::format("{}: {}.{}: unknown key; beside {} there are no others", source_, key,
                                               printable(name), object_text(option)));
      }
      read_key(*path, inner);
    }
  }
  static std::string object_text(const Option& option) {
    std::vector<std::string> keys;
    for (const auto& [name, path] : option.object_keys) keys.push_back(fmt::format("\"{}\": ...", name));
    return fmt::format("{{{}}}", fmt::join(keys, ", "));
  }

  void take(const Option& option) {
    result_.given.insert(option.path);
    if (overriding_) result_.overridden.insert(option.path);
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
      reader.say_what_is_without();
      if (declared[0].value_text() == declared[0].default_text) {
        reader.problems_.push_back(fmt::format("{}: {} is missing", place, declared[0].path));
      }
      reader.tell_spellings();
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

  void read_foreign_key(const std::string& key, const Json& value) {
    const std::string section = key.substr(0, key.size() - leaf_of(key).size());  // "training."
    const bool somewhere = section.empty() || sections_.contains(section.substr(0, section.size() - 1));
    const auto found = somewhere ? foreign_keys_.find(leaf_of(key)) : foreign_keys_.end();
    if (found == foreign_keys_.end()) return problems_.push_back(unknown_key(key, value));
    if (value.is_null()) return;
    const ForeignAnswer answer = found->second->answer(value.dump(-1, ' ', false, Json::error_handler_t::replace));
    switch (answer.verdict) {
      case ForeignAnswer::Verdict::refused:
        problems_.push_back(fmt::format("{}: {} is not supported: {}", source_, key, answer.reason));
        break;
      case ForeignAnswer::Verdict::ignored: ignore(key, answer.reason); break;
      case ForeignAnswer::Verdict::used:
        for (const auto& [path, json] : answer.settings) settings_.push_back({key, json_in_message(value), path, json});
    }
  }

  void ignore(const std::string& key, const std::string& reason) {
    auto place =
        std::find_if(ignored_.begin(), ignored_.end(), [&](const auto& entry) { return entry.first == reason; });
    if (place == ignored_.end()) place = ignored_.insert(place, {reason, {overriding_ ? "--set" : source_, {}}});
    place->second.second.push_back(leaf_of(key));
  }

  // What all keys of a source together say.
  void end_source() {
    for (const FlagOff& off : flags_off_) switch_off(off);
    flags_off_.clear();
    for (const ForeignSetting& setting : settings_) {
      const Option& option = *keys_.at(setting.path).option;
      const bool replaces = spelled_.contains(option.path);
      const std::string before = option.value_text();
      BRISK_CHECK(read_value(option, parse_own_json(setting.json)), "{} = {}", setting.path, setting.json);
      result_.notes.push_back(
          fmt::format("{}: {} {} is {} = {} here{}", overriding_ ? "--set" : source_, setting.key, setting.value,
                      option.path, option.value_text(),
                      replaces && before != option.value_text() ? fmt::format(", in place of {}", before) : ""));
      take(option);
    }
    settings_.clear();
  }

  // "bf16": false.
  struct FlagOff {
    std::string key;
    const Option* option;
    const Option::Flag* flag;
  };
  void switch_off(const FlagOff& off) {
    const Option& option = *off.option;
    const bool is_on = option.value_text() == Json(off.flag->value).dump();
    if (const auto spelling = spelled_.find(option.path); spelling != spelled_.end()) {
      if (is_on) {
        problems_.push_back(fmt::format("{}: {} is false, and {} says {}; remove one of them", source_, off.key,
                                        spelling->second, option.value_text()));
      }
      return;
    }
    if (result_.given.contains(option.path) && !is_on) return;  // the file says something else
    if (is_on) take_back(option);
    if (!off.flag->otherwise.empty()) {
      BRISK_CHECK(read_value(option, off.flag->otherwise), "{} = {}", option.path, off.flag->otherwise);
      take(option);
    }
    const std::string place = overriding_ ? "--set" : source_;
    result_.notes.push_back(
        off.flag->otherwise.empty() && !is_on
            ? fmt::format("{}: {} false leaves {} at {}", place, off.key, option.path, option.value_text())
            : fmt::format("{}: read {} false as {} = {}", place, off.key, option.path, option.value_text()));
  }

  // Completes the problems with values that do not fit.
  void say_what_is_without() {
    for (const Unfit& unfit : unfit_) take_back(*unfit.option);
    apply_other_defaults(options_, result_.given);
    for (const Unfit& unfit : unfit_) problems_[unfit.problem] += fix_for(*unfit.option, unfit.value);
    unfit_.clear();
  }

  void tell_spellings() {
    constexpr size_t kOneByOne = 5;
    std::vector<std::string> lines, together;
    for (const Spelling& other : other_spellings_) {
      lines.push_back(fmt::format("{}: read {} as {}", other.source, other.key, other.path));
      together.push_back(fmt::format("{} is {}", leaf_of(other.key), other.path));
    }
    if (lines.size() > kOneByOne)
      lines = {fmt::format("{}: in brisk's own words {}", other_spellings_[0].source, fmt::join(together, ", "))};
    result_.notes.insert(result_.notes.begin(), lines.begin(), lines.end());
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

  std::string unknown_key(const std::string& key, const Json& value) {
    const std::string start = fmt::format("{}: {}: unknown key", source_, printable(key));
    if (sections_.contains(key)) {  // in --set
      return start +
             fmt::format("; {} is a section: set one of its keys, such as {}.{}", key, key, first_of(key, value));
    }
    if (value.is_object() && key.find('.') == std::string::npos) {
      const std::string section = nearest_word(key, {sections_.begin(), sections_.end()});
      if (!section.empty()) return start + fmt::format("; did you mean the section {}?", section);
    }
    const std::string nearest = nearest_option(options_, key);
    if (!nearest.empty()) return start + fmt::format("; did you mean {}?", nearest);
    const std::string section = key.find('.') == std::string::npos ? "" : key.substr(0, key.find('.'));
    if (!listed_.insert(section).second) return start;  // the list is long enough to be read once
    std::vector<std::string> known;
    for (const Option& option : options_) {
      if (option.section() == section) known.push_back(option.name());
    }
    if (section.empty()) known.insert(known.end(), sections_.begin(), sections_.end());
    return start +
           fmt::format("; {} has {}", section.empty() ? "the file" : printable(section), fmt::join(known, ", "));
  }

  const std::vector<Option>& options_;
  std::map<std::string, Target> keys_;
  std::map<std::string, const Target*> keys_without_section_;  // null: of several options
  std::map<std::string, const ForeignKey*> foreign_keys_;
  std::map<std::string, std::function<void()>> defaults_;
  std::set<std::string> sections_;

  std::string source_;
  bool overriding_ = false;
  std::map<std::string, std::string> spelled_;  // canonical path to the spelling the current source used
  std::vector<FlagOff> flags_off_;
  struct ForeignSetting {
    std::string key, value, path, json;
  };
  std::vector<ForeignSetting> settings_;

  std::vector<std::string> problems_;
  struct Unfit {
    size_t problem;
    const Option* option;
    Json value;
  };
  std::vector<Unfit> unfit_;
  std::set<std::string> listed_;  // sections of which all keys were named
  struct Spelling {
    std::string source, key, path;
  };
  std::vector<Spelling> other_spellings_;
  std::vector<std::pair<std::string, std::pair<std::string, std::vector<std::string>>>> ignored_;  // by reason
  ReadResult result_;
};

}  // namespace

ReadResult read_options(const std::vector<Option>& options, const std::string& json_text,
                        const std::string& source_name, const std::vector<std::string>& overrides,
                        const std::vector<ForeignKey>& foreign_keys) {
  Reader reader(options, &foreign_keys);
  reader.read_text(json_text, source_name);
  for (const std::string& text : overrides) reader.read_override(text);
  return reader.finish();
}

}  // namespace brisk
