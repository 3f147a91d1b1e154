// labels.json of a classifier's run: the names of its classes, in the order of its outputs.
//
//   write_labels("runs/reviews", labels);               // ["negative", "positive"]
//   read_labels("runs/reviews", 2).name(1);             // "positive"
#pragma once

#include <string>

#include "data/table/labels.h"

namespace brisk {

constexpr const char* kLabelFile = "/labels.json";

void write_labels(const std::string& run, const LabelSet& labels);
// UserError where there is no such file, or it does not have the names of `count` classes, each once. 0: of two or more.
LabelSet read_labels(const std::string& run, int64_t count);

// The same from the content of a file; `path` is named in errors.
LabelSet labels_from_json_text(const std::string& text, const std::string& path, int64_t count);

}  // namespace brisk
