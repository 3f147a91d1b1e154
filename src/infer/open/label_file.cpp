#include "infer/open/label_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"
#include "base/text/printable.h"

namespace brisk {

using Json = nlohmann::ordered_json;

void write_labels(const std::string& run, const LabelSet& labels) {
  write_file_atomically(run + kLabelFile,
                        Json(labels.names()).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

LabelSet read_labels(const std::string& run, int64_t count) {
  const std::string path = run + kLabelFile;
  if (!file_exists(path)) {
    user_error("{}: no such file; it has the names of the classifier's {}classes: copy it back from where it was saved",
               path, count > 0 ? fmt::format("{} ", count) : "");
  }
  return labels_from_json_text(read_file(path, file_kind::labels), path, count);
}

LabelSet labels_from_json_text(const std::string& text, const std::string& path, int64_t count) {
  const Json json = parse_json(text, path, "copy it back from where it was saved");
  std::vector<std::string> names;
  if (json.is_array()) {
    for (const Json& name : json) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  if (names.size() < 2 || names.size() != json.size())
    user_error("{}: expected a list of the names of two classes or more; copy it back from where it was saved", path);
  if (count > 0 && std::ssize(names) != count) {
    user_error("{}: it names {} classes, but the model has {}; copy it back from where it was saved", path,
               names.size(), count);
  }
  LabelSet labels = LabelSet::in_order(std::move(names));
  for (int64_t i = 0; i < labels.count(); ++i) {
    if (labels.find(labels.name(i)) == i) continue;
    user_error("{}: classes {} and {} have the same name, \"{}\"; copy it back from where it was saved", path,
               labels.find(labels.name(i)), i, printable(labels.name(i)));
  }
  return labels;
}

}  // namespace brisk
