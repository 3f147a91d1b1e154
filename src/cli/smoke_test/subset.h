// A subset of a job's own data for its smoke test, small enough to train on in seconds.
//
//   copy_text_subset({"books/"}, scratch + "/subset");                      // for a language model
//   TableSubset subset;
//   copy_table_subset(job, {"reviews.csv"}, scratch + "/subset.jsonl", subset);   // for an encoder
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/job.h"

namespace brisk {

// Copies the beginnings of a few of the files to `folder`, keeping their extensions. Returns the number of bytes.
int64_t copy_text_subset(const std::vector<std::string>& entries, const std::string& folder);

struct TableSubset {
  int64_t rows = 0;
  bool labels = false, pairs = false;     // whether the table has them
  std::map<std::string, size_t> classes;  // rows of each class in the last copy
};

// Copies a few rows of each class of a table to a .jsonl file with the keys text, pair and label. If `subset` already
// has classes, only rows of these are copied.
void copy_table_subset(const Job& job, const std::vector<std::string>& paths, const std::string& path,
                       TableSubset& subset);

}  // namespace brisk
