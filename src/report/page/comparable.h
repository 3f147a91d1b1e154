// Which figures of several runs can be compared: a loss of one task, of one set of classes, of one validation text or
// of one tokenizer's tokens says nothing about that of another.
//
//   const Comparability can = comparability_of(runs);
//   if (can.compares(metric)) ...            // a better value is a better model
//   for (const std::string& reason : can.reasons) say("{}", reason);
#pragma once

#include <string>
#include <vector>

#include "base/metrics.h"
#include "report/read/run_record.h"

namespace brisk {

struct Comparability {
  bool same_task = true;
  bool same_classes = true;
  bool same_validation = true;
  bool same_tokens = true;           // the tokenizers are the same, or no metric depends on them
  bool same_speed_unit = true;       // a token of one run is a token of the others: their tokens a second compare
  std::vector<std::string> reasons;  // a sentence for each of them that is not so, and what to do

  // Whether a better value of the metric is a better model.
  bool compares(const Metric& metric) const {
    return same_task && same_classes && same_validation && (same_tokens || metric.any_tokenizer);
  }
};

Comparability comparability_of(const std::vector<RunRecord>& runs);

// Whether run `which` is not within the others' 95 % intervals, nor they in its own, by the best evaluation of each:
// else the next validation set may have it the other way round. True of runs without intervals.
bool stands_out(const std::vector<RunRecord>& runs, size_t which);

}  // namespace brisk
