// The figures by which runs are compared, as numbers and in words.
//
//   const RunFacts facts = facts_of(run);
//   words::metric(facts.best, "loss");       // "5.3240", or "–" where it is not known
#pragma once

#include <string>
#include <string_view>

#include "base/metrics.h"
#include "report/read/run_record.h"

namespace brisk {

struct RunFacts {
  Metrics best, last;  // of the best and of the last evaluation; empty: there is none
  double best_step = kUnknown, best_seconds = kUnknown;
  double model_bytes = kUnknown;
  double training_loss = kUnknown;  // of the last logged line
};
RunFacts facts_of(const RunRecord& run);

// Seconds after which an evaluation of the run was at least as good as `goal`; NaN: never.
double seconds_to(const RunRecord& run, const Metric& goal);

// One JSON object (as text, indented by `indent` or on one line where it is -1) of a run's figures; null: not known.
std::string facts_json(const RunRecord& run, int indent);

// What a task predicts, and its metrics are of: "tokens"; "targets" of a task that this brisk does not have.
std::string targets_of_task(const std::string& task);
// A sentence for a page: "Mean cross-entropy in nats, of the masked tokens."; empty where nothing is known.
std::string metric_explanation(const Metric& metric, const std::string& task);

namespace words {
std::string loss(double value);
std::string metric(const Metric& metric);
std::string metric(const Metrics& metrics, std::string_view name);
std::string count(double value);  // 1.23M
std::string exact(double value);  // 1,234,567
std::string bytes(double value);
std::string duration(double seconds);
std::string percent(double share);
std::string share(double share);  // 91.23 %
std::string rate(double value);   // 12.3K
std::string ratio(double value);  // 1.37x; empty where it is not known
}  // namespace words

}  // namespace brisk
