// A few steps of the job's own model, with its own weights and tokenizer, on a few rows of its data: what a smoke test
// says of the real thing. Nothing of it is kept.
//
//   Trial trial = try_model(job, folder, interrupted);      // job.data names the rows
//   trial.tokens_per_second;                                // of the real model
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "job/job.h"
#include "train/engine/engine.h"
#include "train/record/metrics_log.h"
#include "train/task/task.h"

namespace brisk {

// How much of the job's model this machine computes in a few seconds.
struct TrialSize {
  int64_t steps = 0;      // 0: too slow to be tried
  int64_t sequences = 0;  // of a step
  int64_t evaluated = 0;  // sequences that an evaluation may have; 0: none
  double seconds_per_sequence = 0;
};
TrialSize trial_size(const Job& job, const EngineOptions& options);

struct Trial {
  double tokens_per_second = 0;  // of the job's model: at its vocabulary size, which that of a few rows may be below
  double tokens_per_sequence = 0;
  double training_tokens = 0;  // of the rows that were given
  std::optional<EvaluationMetrics> evaluation;
  std::vector<std::string> warnings;  // what the run itself would warn of
};
Trial try_model(Job job, const TrialSize& size, const std::string& folder, const std::function<bool()>& interrupted);

}  // namespace brisk
