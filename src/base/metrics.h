// Metrics (brisk/metrics.h) as JSON: what a run writes of them into its files, and what is read back.
#pragma once

#include <brisk/metrics.h>

#include <nlohmann/json_fwd.hpp>

namespace brisk {

// What a run says its metrics are (all but their values), and back. What cannot be understood is left out.
nlohmann::ordered_json metric_kinds_to_json(const Metrics& metrics);
Metrics metric_kinds_from_json(const nlohmann::ordered_json& json);

// The metrics of a line of metrics.jsonl: all of its keys validation_<name>, with validation_<name>_interval. What they
// are is looked up in `kinds`, or else they are standard ones. Empty: the line is of no evaluation.
Metrics metrics_of_line(const nlohmann::ordered_json& line, const Metrics& kinds);
// Those of a line of a training step: the keys that are named like one of `kinds`, and the loss and the accuracy, which
// every run has.
Metrics metrics_of_step_line(const nlohmann::ordered_json& line, const Metrics& kinds);

}  // namespace brisk
