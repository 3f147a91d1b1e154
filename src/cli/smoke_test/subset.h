// A subset of a job's own data for its smoke test, small enough to train on in seconds.
//
//   TextSubset text;
//   copy_text_subset({"books/"}, scratch + "/subset", text);                      // for a language model
//   TableSubset table;
//   copy_table_subset(job, {"reviews.csv"}, scratch + "/subset.jsonl", table);    // for an encoder
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "job/job.h"

namespace brisk {

struct TextSubset {
  int64_t bytes = 0;     // copied
  double all_bytes = 0;  // of text in all files, compressed ones as far as they were read
  std::vector<std::pair<std::string, std::string>> origin;  // the copy's path, and the user's
};

// Adds copies of the beginnings of a few of the files to `folder`, decompressed and cut after a line.
void copy_text_subset(const std::vector<std::string>& entries, const std::string& folder, TextSubset& subset);

struct TableSubset {
  int64_t most_rows = 400, most_rows_of_class = 40;
  int64_t rows = 0;
  double all_rows = 0;                    // of the tables, estimated where they are long
  bool labels = false, pairs = false;     // whether the table has them
  std::map<std::string, size_t> classes;  // rows of each class in the last copy
};

// Copies a few rows of each class of a table to a .jsonl file with the keys text, pair and label. If `subset` already
// has classes, only rows of these are copied.
void copy_table_subset(const Job& job, const std::vector<std::string>& paths, const std::string& path,
                       TableSubset& subset);

}  // namespace brisk
