// A sliver of a job's data for its smoke test: small enough to train on in seconds, and of the job's own files.
//
//   copy_text_sliver({"books/"}, scratch + "/sliver");                      // of a language model
//   RowSliver sliver;
//   copy_table_sliver(job, {"reviews.csv"}, scratch + "/sliver.jsonl", sliver);   // of an encoder
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/job.h"

namespace brisk {

// The beginnings of a few of the files, under names with the same endings, in `folder`. Returns their bytes.
int64_t copy_text_sliver(const std::vector<std::string>& entries, const std::string& folder);

struct RowSliver {
  int64_t rows = 0;
  bool labels = false, pairs = false;     // has the table these?
  std::map<std::string, size_t> classes;  // rows of each that were taken last
};

// A few rows of each class of a table, as a .jsonl file with the keys text, pair and label. Only classes that `sliver`
// has count; where it has none, all do.
void copy_table_sliver(const Job& job, const std::vector<std::string>& paths, const std::string& path,
                       RowSliver& sliver);

}  // namespace brisk
