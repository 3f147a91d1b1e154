// The figures by which runs are compared, as numbers and in words.
//
//   const RunFacts facts = facts_of(run);
//   words::loss(facts.best_loss);        // "5.3240", or "–" where it is not known
#pragma once

#include <string>

#include "report/read/run_record.h"

namespace brisk {

struct RunFacts {
  double best_loss = kUnknown, best_perplexity = kUnknown, best_step = kUnknown, best_seconds = kUnknown;
  double best_accuracy = kUnknown;
  double best_f1 = kUnknown, best_accuracy_low = kUnknown, best_accuracy_high = kUnknown;  // of a classifier
  double last_loss = kUnknown, last_perplexity = kUnknown, last_accuracy = kUnknown;
  double model_bytes = kUnknown;
  double training_loss = kUnknown;  // of the last logged line
};
RunFacts facts_of(const RunRecord& run);

// Seconds after which the run had an evaluation with a loss of at most `loss`, or an accuracy of at least `accuracy`;
// NaN: never.
double seconds_to_loss(const RunRecord& run, double loss);
double seconds_to_accuracy(const RunRecord& run, double accuracy);

// One JSON object (as text, indented by `indent` or on one line where it is -1) of a run's figures; null: not known.
std::string facts_json(const RunRecord& run, int indent);

// What the loss of a task is the mean of, and of what its accuracy is a share: a sentence each, and a short name beside
// other tasks' accuracies.
struct TaskWords {
  const char *loss, *accuracy, *accuracy_name;
};
TaskWords words_of_task(const std::string& task);

namespace words {
std::string loss(double value);
std::string perplexity(double value);
std::string count(double value);  // 1.23M
std::string exact(double value);  // 1,234,567
std::string bytes(double value);
std::string duration(double seconds);
std::string percent(double share);
std::string accuracy(double share);             // 91.23 %
std::string interval(double low, double high);  // 89.02 to 92.93 %
std::string rate(double value);                 // 12.3K
}  // namespace words

}  // namespace brisk
