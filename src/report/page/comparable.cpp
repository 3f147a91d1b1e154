#include "report/page/comparable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "job/job_conditions.h"

namespace brisk {

namespace {

enum class Same { yes, no, not_known };

// Of the runs that were evaluated: the others have no figures to compare.
Same is_same(const std::vector<const RunRecord*>& runs, std::string RunRecord::*field) {
  bool known = true;
  for (const RunRecord* run : runs) {
    if ((run->*field).empty()) {
      known = false;
    } else if (!(runs.front()->*field).empty() && run->*field != runs.front()->*field) {
      return Same::no;
    }
  }
  return known ? Same::yes : Same::not_known;
}

const TaskTraits* traits_of(const std::vector<const RunRecord*>& runs) {
  return runs.empty() ? nullptr : find_task_traits(runs.front()->task);
}

}  // namespace

Comparability comparability_of(const std::vector<RunRecord>& runs) {
  Comparability can;
  std::vector<const RunRecord*> all;
  for (const RunRecord& run : runs) all.push_back(&run);
  can.same_speed_unit = is_same(all, &RunRecord::tokenizer_fingerprint) == Same::yes;
  for (const RunRecord& run : runs) can.same_task = can.same_task && run.task == runs.front().task;
  if (!can.same_task) {
    can.reasons.emplace_back("the tasks differ: their losses and accuracies are not comparable");
    return can;
  }
  std::vector<const RunRecord*> evaluated;
  for (const RunRecord& run : runs) {
    if (!run.evaluations.empty()) evaluated.push_back(&run);
  }
  if (evaluated.size() < 2) return can;
  const TaskTraits* task = traits_of(evaluated);
  const auto settle = [&](bool& same, Same found, const std::string& differ, const std::string& unknown) {
    same = found == Same::yes;
    if (found == Same::no) can.reasons.push_back(differ);
    if (found == Same::not_known) can.reasons.push_back(unknown);
  };
  // An earlier brisk recorded none of them, and a task may have no fingerprint of what it evaluates.
  const std::string unknown_here = "some of the runs did not record it";
  if (task != nullptr && task->has_labels) {
    settle(can.same_classes, is_same(evaluated, &RunRecord::classes_fingerprint),
           "the classes differ: an accuracy over other classes is another thing",
           "whether the classes are the same is not known: " + unknown_here);
  }
  settle(can.same_validation, is_same(evaluated, &RunRecord::validation_fingerprint),
         "the validation data differ, so no run is called the better one; evaluate them on the same: with "
         "data.validation in the jobs (a part set aside by data.validation_fraction depends on the seed and the text), "
         "or with `brisk eval RUN --data FILE`",
         "whether the validation data are the same is not known: " + unknown_here +
             "; `brisk eval RUN --data FILE` compares them");
  if (task == nullptr || task->predicts_tokens) {
    const Same found = is_same(evaluated, &RunRecord::tokenizer_fingerprint);
    const bool bits = std::all_of(evaluated.begin(), evaluated.end(), [](const RunRecord* run) {
      return run->best_evaluation() != nullptr && run->best_evaluation()->metrics.find("bits_per_byte") != nullptr;
    });
    const std::string instead = bits ? "bits per byte are compared instead"
                                     : "bits per byte would be comparable, but not every run has recorded them "
                                       "(`brisk eval RUN --data FILE` tells them)";
    settle(can.same_tokens, found, "the tokenizers differ: a loss per token of one is no loss of the other; " + instead,
           "whether the tokenizers are the same is not known: " + unknown_here + "; " + instead);
  }
  return can;
}

bool stands_out(const std::vector<RunRecord>& runs, size_t which) {
  const EvaluationPoint* best = runs[which].best_evaluation();
  if (best == nullptr) return true;
  for (const Metric& metric : best->metrics) {
    if (!metric.has_interval()) continue;
    for (size_t i = 0; i < runs.size(); ++i) {
      const EvaluationPoint* other = i == which ? nullptr : runs[i].best_evaluation();
      const Metric* theirs = other == nullptr ? nullptr : other->metrics.find(metric.name);
      if (theirs == nullptr) continue;
      const auto within = [](double value, const Metric& of) {
        return of.has_interval() && value >= of.low && value <= of.high;
      };
      if (within(metric.value, *theirs) || within(theirs->value, metric)) return false;
    }
  }
  return true;
}

}  // namespace brisk
