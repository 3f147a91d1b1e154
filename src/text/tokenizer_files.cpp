#include "text/tokenizer_files.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace brisk {

namespace {

const nlohmann::json& required_array(const std::string& path, const nlohmann::json& content, const char* key) {
  const auto found = content.find(key);
  if (found == content.end() || !found->is_array()) {
    user_error(
        "{}: \"{}\": found {}, expected an array; the file is no tokenizer of ours or was edited: write it again "
        "with `brisk tokenizer train`",
        path, key, found == content.end() ? "nothing" : found->type_name());
  }
  return *found;
}

}  // namespace

const nlohmann::json& required_array_of_strings(const std::string& path, const nlohmann::json& content,
                                                const char* key) {
  const nlohmann::json& array = required_array(path, content, key);
  for (size_t i = 0; i < array.size(); ++i) {
    if (!array[i].is_string()) {
      user_error(
          "{}: \"{}\"[{}]: found {}, expected a string; the file was edited: write it again with `brisk tokenizer "
          "train`",
          path, key, i, array[i].dump());
    }
  }
  return array;
}

const nlohmann::json& required_array_of_numbers(const std::string& path, const nlohmann::json& content,
                                                const char* key) {
  const nlohmann::json& array = required_array(path, content, key);
  for (size_t i = 0; i < array.size(); ++i) {
    if (!array[i].is_number()) {
      user_error("{}: \"{}\"[{}]: found {}, expected a number; the file was edited: import it again", path, key, i,
                 array[i].dump());
    }
  }
  return array;
}

std::string json_elements(std::span<const std::string> texts) {
  std::string elements;
  size_t line_begin = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    elements += nlohmann::json(texts[i]).dump();
    if (i + 1 == texts.size()) break;
    elements += ',';
    if (elements.size() - line_begin > 100) {
      elements += '\n';
      line_begin = elements.size();
    } else {
      elements += ' ';
    }
  }
  return elements;
}

}  // namespace brisk
