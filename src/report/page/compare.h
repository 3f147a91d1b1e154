// `brisk compare`: several runs side by side, by the metric that chose the best model of each (the loss where they
// differ in it). Runs of different tasks are not compared in what they learned: a loss of one says nothing about the
// other's.
//
//   const Comparison comparison = compare_runs({read_run("runs/a"), read_run("runs/b")});
//   fmt::print("{}", comparison_text(comparison));                   // two tables
//   write_file_atomically("compare.html", comparison_page(comparison));
#pragma once

#include <string>
#include <vector>

#include "base/metrics.h"
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
  bool same_task = true;
  // The metric they are compared by, with the best value that every run with an evaluation reached; NaN: none.
  Metric common;
  std::vector<double> seconds_to_common;  // when each first did
};

Comparison compare_runs(std::vector<RunRecord> runs);

// The metrics that any of the runs shows, without values, that they are compared by first.
std::vector<Metric> metrics_of_all(const Comparison& comparison);

// One row of figures for each run; which of them is best where there is such a thing.
struct ComparedColumn {
  std::string title;
  std::vector<std::string> cells;  // of each run
  int best = -1;                   // row; -1: none is
};
std::vector<ComparedColumn> compared_columns(const Comparison& comparison);

std::string comparison_text(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);
std::string comparison_page(const Comparison& comparison);

}  // namespace brisk
