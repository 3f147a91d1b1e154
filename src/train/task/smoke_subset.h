// A subset of a job's own data for its smoke test, small enough to train on in seconds.
//
//   Job small = ...;
//   say("{}", take_text_subset(job, scratch, small));      // "196.3 KB of the job's own text"; small.data names it
#pragma once

#include <string>

#include "job/job.h"

namespace brisk {

// The beginnings of a few of the files.
std::string take_text_subset(const Job& job, const std::string& folder, Job& small);

// A few rows of each class of the table, as a .jsonl file with the keys text, pair and label.
std::string take_table_subset(const Job& job, const std::string& folder, Job& small);

}  // namespace brisk
