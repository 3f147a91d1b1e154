// Whether the labels of a table are classes, of which each comes again and again; or something else that a classifier
// could only learn nonsense from: measurements, lists, free text, one answer in several spellings.
//
//   LabelFindings found = check_labels({{"pos", 700}, {"neg", 725}});   // a label and its rows
//   if (!found.problem.empty()) user_error("{}: {}", place, found.problem);
//   for (const std::string& warning : found.warnings) warn("{}: {}", place, warning);
//
// A problem is one where training would be nonsense, a warning where it may be. Thousands of classes pass where they
// have their rows, and so do star ratings, numbers that are names, and yes and no.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace brisk {

using LabelRows = std::vector<std::pair<std::string, int64_t>>;

struct LabelFindings {
  std::string problem;                // what was found, and what to do instead; empty: none
  std::vector<std::string> warnings;  // the same
};

// `labels` are different classes (LabelSet). `all_rows`: they are all of the table, and not those of a sample, in which
// most of many classes come once.
LabelFindings check_labels(const LabelRows& labels, bool all_rows = true);

}  // namespace brisk
