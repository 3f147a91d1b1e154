#include "infer/label_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"

namespace brisk {

using Json = nlohmann::ordered_json;

void write_labels(const std::string& run, const LabelSet& labels) {
  write_file_atomically(run + kLabelFile,
                        Json(labels.names()).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

LabelSet read_labels(const std::string& run) {
  const std::string path = run + kLabelFile;
  if (!file_exists(path)) return {};
  const Json json = parse_json(read_file(path, file_kind::labels), path, "copy it back from where it was saved");
  std::vector<std::string> names;
  if (json.is_array()) {
    for (const Json& name : json) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  if (names.size() < 2 || names.size() != json.size())
    user_error("{}: expected a list of the names of two classes or more; copy it back from where it was saved", path);
  return LabelSet::in_order(std::move(names));
}

}  // namespace brisk
