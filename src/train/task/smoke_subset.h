// A subset of a job's own data for its smoke test, small enough to train on in seconds.
//
//   Job small = ...;
//   const SmokeSubset subset = take_text_subset(job, scratch, {}, small);      // small.data names it
//   say("{}", subset.text);                                                    // "196.3 KB of the job's own text"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/job.h"

namespace brisk {

struct SubsetSize {
  int64_t rows = 400, rows_of_class = 40;       // of a table, at most
  std::optional<int64_t> validation_rows = {};  // none: a part as the job has it; 0: no part; others: about so many
};

struct SmokeSubset {
  std::string text;                                         // what it is
  double share = 1;                                         // of the job's training data, estimated where that is long
  std::vector<std::pair<std::string, std::string>> origin;  // a copy's path, and the user's
};

// The beginnings of a few of the files, decompressed and cut after a line.
SmokeSubset take_text_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small);

// A few rows of each class of the table, as a .jsonl file with the keys text, pair and label.
SmokeSubset take_table_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small);

// A few texts and their translations, as a .jsonl file with the keys source and target.
SmokeSubset take_pairs_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small);

}  // namespace brisk
