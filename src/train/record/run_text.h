// What a run prints: what the model is made of, and where the time went.
//
//   say("{}", model_line(model_costs(config, row_means(sequences, layout))));
//   say("{}", ledger_table(ledger.totals(), speed));
//   say("{}", speed_line(speed));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "models/model_costs.h"
#include "report/read/run_record.h"
#include "train/engine/engine.h"
#include "train/record/metrics_log.h"

namespace brisk {

// "4.16M parameters (embedding 2.56M, feed-forward 1.05M); 24.9 MFLOP a token (feed-forward 25 %, head 62 %)"
std::string model_line(const std::vector<ComponentCost>& costs);

// Where memory goes, before anything is allocated: a line, or a table for who has to free some.
std::string memory_line(const MemoryPlan& plan);
std::string memory_table(const MemoryPlan& plan);

// Speed of a stretch of training.
struct Speed {
  double seconds = 0;  // wall time of the stretch
  int64_t tokens = 0, steps = 0, sequences = 0;
  double flop_per_token = 0;
  double peak_gflops = 0;
  double training_seconds = 0;  // without evaluation, checkpoints and start-up: what the speeds below are of
  int64_t gpu_bytes = 0;        // the most of a GPU's memory that was the process's; 0: it ran on the CPU
  int64_t peak_bytes = 0;       // the most of the host's memory
  int64_t own_bytes = 0;        // the most of the host's memory besides mapped files, as sampled; 0: not told apart
  int64_t planned_bytes = 0;    // of the memory it computes in; 0: not planned
  int64_t rows = 0;             // that were computed: the tokens, and padding where the job asks for it

  double tokens_per_second() const { return training_seconds > 0 ? static_cast<double>(tokens) / training_seconds : 0; }
  double sequences_per_second() const {
    return training_seconds > 0 ? static_cast<double>(sequences) / training_seconds : 0;
  }
  double gflops() const { return tokens_per_second() * flop_per_token * 1e-9; }
  double utilisation() const { return peak_gflops > 0 ? gflops() / peak_gflops : 0; }
};

// One line an epoch: training loss, the metrics of its evaluation, speed, time.
struct EpochRow {
  int64_t epoch = 0, step = 0;
  double share = 1;  // of the epoch's steps: less where the run ended inside it
  double training_loss = 0, training_accuracy = 0;
  double training_perplexity = Metric::kNone;   // of a model of tokens
  int64_t since_step = 0;                       // the training's means are of this step and later ones; 0: of all
  std::optional<EvaluationMetrics> evaluation;  // the last one inside the epoch
  Speed speed;
  int64_t skipped_updates = 0;  // a column where any epoch has some
};
std::string epoch_table(const std::vector<EpochRow>& rows, const std::string& best_by);
// At most so many of them, evenly spaced, the last included.
std::vector<EpochRow> thinned(const std::vector<EpochRow>& rows, size_t most);
// "epoch 2/3: loss 4.1234, accuracy 20.31 %, validation loss 4.2011, the best so far; 12.3K tokens/s, 33.1 s: forward
// 28 %, loss 18 %, ..."; `totals`: of the epoch; the evaluation is told where it is of its last step.
std::string epoch_line(const EpochRow& row, int64_t epochs, const Ledger::Totals& totals, const std::string& best_by,
                       bool best);
// "forward 28 %, loss 18 %, backward 45 %, optimizer 6 %, rest 3 %"
std::string shares_text(const Ledger::Totals& totals);

// Seconds of a stretch that were training: everything but start-up, evaluation and checkpoints.
double training_seconds(const Ledger::Totals& totals);
// Seconds of an epoch: its steps and evaluations. A checkpoint is saved when the line of its epoch has been printed.
double epoch_seconds(const PhaseSeconds& ledger);

// "forward_linear", 12.5 and so on: those that took time.
PhaseSeconds phases_of(const Ledger::Totals& totals);
// Phases that took time, their share, milliseconds a step; the shares sum to 100 %, those below half a percent together.
std::string ledger_table(const Ledger::Totals& totals, const Speed& speed);
std::string ledger_table(const PhaseSeconds& ledger, const Speed& speed, bool sampled = false);
// "5210 tokens/s, 40.7 sequences/s, 786.0 ms/step, 131.0 GFLOP/s: utilisation 71.2 % of the 184 GFLOP/s that
// multiply-adds in registers reach here; " and "peak memory 412 MiB (310 MiB planned; 80 MiB are mapped files)"
std::string speed_line(const Speed& speed);
std::string peak_memory_text(const Speed& speed);

}  // namespace brisk
