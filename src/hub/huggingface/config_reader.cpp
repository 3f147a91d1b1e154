#include "hub/huggingface/config_reader.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"
#include "base/terminal/terminal.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

const Json* find_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_of(const std::string& path) {
  if (!file_exists(path)) {
    user_error("{}: no such file; a Hugging Face model is a folder with config.json and model.safetensors", path);
  }
  return read_file(path, file_kind::config);
}

// What a message shows of a value; bytes that are not UTF-8 cannot be dumped.
std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), 200);
}

}  // namespace

ConfigReader::ConfigReader(const std::string& path) : ConfigReader(path, text_of(path)) {}

ConfigReader::ConfigReader(const std::string& path, const std::string& text) : path_(path) {
  json_ = std::make_shared<const Json>(parse_json(text, path_, "fetch the file again"));
  if (!json_->is_object()) {
    user_error("{}: found {}, expected a JSON object; fetch the file again", path_, json_in_message(*json_));
  }
}

const Json* ConfigReader::find(const char* key) const { return find_in(*json_, key); }

int64_t ConfigReader::size(const char* key, int64_t most) const {
  const Json* value = find(key);
  if (value == nullptr) user_error("{}: it has no {}; fetch the file again", path_, key);
  return checked_size(key, *value, most);
}

int64_t ConfigReader::size_or(const char* key, int64_t otherwise, int64_t most) const {
  const Json* value = find(key);
  return value == nullptr ? otherwise : checked_size(key, *value, most);
}

bool ConfigReader::boolean_or(const char* key, bool otherwise) const {
  const Json* value = find(key);
  if (value != nullptr && !value->is_boolean()) complain(key, *value, "true or false");
  return value == nullptr ? otherwise : value->get<bool>();
}

double ConfigReader::number_or(const char* key, double otherwise, const Range& range) const {
  return number_in(*json_, key, otherwise, range);
}

double ConfigReader::number_in(const Json& object, const char* key, double otherwise, const Range& range) const {
  const Json* value = find_in(object, key);
  if (value == nullptr) return otherwise;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number > range.above && number <= range.most)) {
    complain(key, *value, fmt::format("a number above {:g} and at most {:g}", range.above, range.most));
  }
  return number;
}

double ConfigReader::share_or(const char* key, double otherwise) const {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  const double share = value->is_number() ? value->get<double>() : std::nan("");
  if (!(share >= 0 && share < 1)) complain(key, *value, "a number from 0 on, below 1");
  return share;
}

std::string ConfigReader::text_or(const char* key, const std::string& otherwise) const {
  return text_in(*json_, key, otherwise);
}

std::string ConfigReader::text_in(const Json& object, const char* key, const std::string& otherwise) const {
  const Json* value = find_in(object, key);
  if (value != nullptr && !value->is_string()) complain(key, *value, "a string");
  return value == nullptr ? otherwise : value->get<std::string>();
}

std::vector<std::string> ConfigReader::texts_or_none(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  std::vector<std::string> texts;
  if (!value->is_array()) complain(key, *value, "an array of strings");
  for (const Json& element : *value) {
    if (!element.is_string()) complain(key, *value, "an array of strings");
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

std::vector<std::string> ConfigReader::numbered_texts_or_none(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  const char* expected = "an object that gives every number from \"0\" on a string";
  if (!value->is_object()) complain(key, *value, expected);
  std::vector<std::string> texts(value->size());
  std::vector<bool> said(value->size(), false);
  for (const auto& [number, text] : value->items()) {
    size_t place = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), place);
    const bool fits = error == std::errc() && end == number.data() + number.size() && place < texts.size();
    if (!fits || said[place] || !text.is_string()) complain(key, *value, expected);
    texts[place] = text.get<std::string>();
    said[place] = true;
  }
  std::unordered_map<std::string_view, size_t> places;
  for (size_t place = 0; place < texts.size(); ++place) {
    const auto [first, is_new] = places.emplace(texts[place], place);
    if (!is_new) {
      user_error("{}: {} gives {} and {} the same name, \"{}\"; expected every name once: give them two", path_, key,
                 first->second, place, printable(texts[place]));
    }
  }
  return texts;
}

void ConfigReader::require(const char* key, bool holds, const std::string& expected) const {
  if (holds) return;
  const Json* value = find(key);
  user_error("{}: {} is {}, which brisk does not support; it supports {}", path_, key,
             value == nullptr ? "absent" : shown(*value), expected);
}

int64_t ConfigReader::checked_size(const char* key, const Json& value, int64_t most) const {
  if (!value.is_number_integer() || value < 1 || value > most) {
    complain(key, value, fmt::format("an integer from 1 to {}", most));
  }
  return value.get<int64_t>();
}

void ConfigReader::complain(const char* key, const Json& value, const std::string& expected) const {
  user_error("{}: {} is {}, expected {}; fetch the file again", path_, key, shown(value), expected);
}

}  // namespace brisk
