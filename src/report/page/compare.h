// `brisk compare`: several runs side by side, by the metric that chose the best model of each (the loss where they
// differ in it, bits per byte where their tokenizers differ). What cannot be compared (report/page/comparable.h) is
// shown, but nothing of it is called the best.
//
//   const Comparison comparison = compare_runs({read_run("runs/a"), read_run("runs/b")});
//   fmt::print("{}", comparison_text(comparison));                   // two tables
//   write_file_atomically("compare.html", comparison_page(comparison));
#pragma once

#include <string>
#include <vector>

#include "base/metrics.h"
#include "report/page/comparable.h"
#include "report/read/run_facts.h"
#include "report/read/run_record.h"

namespace brisk {

// A setting that is not the same in all runs.
struct Difference {
  std::string path;
  std::vector<std::string> values;  // of each run, as in JSON; "–" where the run does not have it
};

struct Comparison {
  std::vector<RunRecord> runs;
  std::vector<std::string> labels;  // the folders' names where they tell the runs apart, otherwise their paths
  std::vector<Difference> differences;
  Comparability can;
  // The metric they are compared by, with the best value that every run with an evaluation reached; NaN: none, or they
  // are not told apart by it.
  Metric common;
  std::vector<double> seconds_to_common;  // when each first did
  std::vector<std::string> warnings;      // what is not compared, and why
};

Comparison compare_runs(std::vector<RunRecord> runs);

// The metrics that any of the runs shows, without values, that they are compared by first.
std::vector<Metric> metrics_of_all(const Comparison& comparison);

// One row of figures for each run; which of them is best where there is such a thing.
struct ComparedColumn {
  std::string title;
  std::vector<std::string> cells;  // of each run
  int best = -1;                   // row; -1: none is
  std::string ratio = {};          // of two runs, where it says something: "1.37x", the second's over the first's
};
std::vector<ComparedColumn> compared_columns(const Comparison& comparison);

std::string comparison_text(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);
std::string comparison_page(const Comparison& comparison);

}  // namespace brisk
