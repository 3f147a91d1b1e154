// labels.json of a classifier's run: the names of its classes, in the order of its outputs.
//
//   write_labels("runs/reviews", labels);               // ["negative", "positive"]
//   read_labels("runs/reviews").name(1);                // "positive"
#pragma once

#include <string>

#include "data/table/labels.h"

namespace brisk {

constexpr const char* kLabelFile = "/labels.json";

void write_labels(const std::string& run, const LabelSet& labels);
// No labels where the run has none. UserError where the file is damaged.
LabelSet read_labels(const std::string& run);

}  // namespace brisk
