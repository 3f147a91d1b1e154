// The tables a run prints: what the model is made of, and where the time went.
//
//   say("{}", model_table(model_costs(config, row_means(sequences, layout))));
//   say("{}", ledger_table(ledger.totals(), speed));
//   say("{}", speed_line(speed));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "models/model_costs.h"
#include "train/engine/engine.h"
#include "train/record/metrics_log.h"

namespace brisk {

// Parameters, bytes and FLOP a token by component.
std::string model_table(const std::vector<ComponentCost>& costs);

// Where memory goes, before anything is allocated.
std::string memory_table(const MemoryPlan& plan);

// Speed of a stretch of training.
struct Speed {
  double seconds = 0;  // wall time of the stretch
  int64_t tokens = 0, steps = 0, sequences = 0;
  double flop_per_token = 0;
  double peak_gflops = 0;
  double training_seconds = 0;  // without evaluation, checkpoints and start-up: what the speeds below are of
  int64_t gpu_bytes = 0;        // the most of a GPU's memory that was the process's; 0: it ran on the CPU

  double tokens_per_second() const { return training_seconds > 0 ? static_cast<double>(tokens) / training_seconds : 0; }
  double gflops() const { return tokens_per_second() * flop_per_token * 1e-9; }
  double utilisation() const { return peak_gflops > 0 ? gflops() / peak_gflops : 0; }
};

// One line an epoch: training loss, the metrics of its evaluation, speed, time.
struct EpochRow {
  int64_t epoch = 0, step = 0;
  double training_loss = 0;
  std::optional<EvaluationMetrics> evaluation;
  Speed speed;
  int64_t skipped_updates = 0;  // a column where any epoch has some
};
std::string epoch_table(const std::vector<EpochRow>& rows, const std::string& best_by);

// Seconds of a stretch that were training: everything but start-up, evaluation and checkpoints.
double training_seconds(const Ledger::Totals& totals);

// Phases that took time, their share, milliseconds a step; the shares sum to 100 %.
std::string ledger_table(const Ledger::Totals& totals, const Speed& speed);
// "5,210 tokens/s, 786 ms a step, 24.6 ms a sample, 131 GFLOP/s, 71.2 % of 184 GFLOP/s, peak memory 412 MiB"
std::string speed_line(const Speed& speed);

}  // namespace brisk
