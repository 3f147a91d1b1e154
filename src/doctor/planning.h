// What `brisk plan` tells of a job before it is trained: what it is (counted), how fast it is here (timed), and what
// follows from the two (predicted, each with what it rests on). doctor/show turns it into text and JSON.
//
// Negative numbers are unknown unless the comment says otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/readings/readings.h"
#include "job/job.h"

namespace brisk {

// What a job is, by its data and the plans that a training makes of it. Nothing of it is timed.
struct JobSize {
  std::vector<ComponentReadings> components;
  int64_t parameters = 0, trained_parameters = 0;
  double flop_per_token = 0;  // training
  int64_t layers = 0, width = 0, vocabulary = 0;
  double update_bytes = 0, update_flop = 0;  // of one update of all parameters

  struct Memory {  // bytes
    int64_t weights = 0, gradients = 0, optimizer = 0, activations = 0, evaluation = 0, workspaces = 0;
    int64_t copy = 0;     // of what is saved, while training goes on
    int64_t program = 0;  // the program itself, tokenizer and loader
    int64_t engine() const { return weights + gradients + optimizer + activations + evaluation + workspaces; }
    int64_t total() const { return engine() + copy + program; }
  } memory;
  int64_t micro_batch_tokens = 0;          // token rows that are computed at once
  int64_t largest_micro_batch_tokens = 0;  // that fits; 0: not even one sequence does

  struct Disk {
    int64_t checkpoint = 0;                                              // bytes of one
    int64_t saves = 0;                                                   // that the run makes
    int64_t kept = 0;                                                    // checkpoints that stay
    int64_t at_most = 0;                                                 // bytes, while one is written
    int64_t cache = 0;                                                   // token files
    int64_t other = 0;                                                   // frozen weights
    int64_t free = -1;                                                   // bytes, where the run goes
    int64_t total() const { return kept * checkpoint + cache + other; }  // what is there at the end
  } disk;

  double sequences_per_epoch = 0, tokens_per_epoch = 0;
  int64_t longest = 0;
  double validation_sequences = 0, validation_tokens = 0;
  double sequences_per_step = 0;
  int64_t steps_per_epoch = 0;
  int64_t total_steps = -1;  // negative: a time decides
  double box_seconds = -1;   // that time
  double tokens_per_step() const { return tokens_per_epoch / static_cast<double>(steps_per_epoch); }
};

// Seconds of a token's work in training, by what makes it more; and of what comes less often.
struct StepTimes {
  double linear = 0, attention = 0, head = 0;  // products of the layers, attention, output projection and its loss
  double rows = 0;                             // norms, elementwise ops, embeddings
  double other = 0;                            // waiting for data, logging
  double update = 0;                           // of a step: clipping and optimizer
  double evaluation = 0;                       // of a token that is evaluated
  double save = 0;                             // of a checkpoint: what training waits for
  double start_up = 0;                         // of a run whose text is tokenized
  double spread = -1;  // of the repeated stretches: half of the distance between the slowest and the fastest, relative
  std::string precision;
  double per_token() const { return linear + attention + head + rows + other; }
  double step_seconds(double tokens_per_step) const { return tokens_per_step * per_token() + update; }
};

// What a job takes.
struct Outlook {
  std::string id;                     // layers, width, data, machines; empty: the job itself
  std::string change;                 // "twice the layers: 4 instead of 2"
  std::vector<std::string> settings;  // with --set, of a run that checks it
  int64_t parameters = 0;
  double flop_per_token = 0;
  int64_t memory_bytes = 0;
  bool fits = false;
  double step_seconds = -1, tokens_per_second = -1, epoch_seconds = -1, run_seconds = -1;
  int64_t disk_bytes = 0;
  double network_bytes_per_step = -1;  // of machines that train together: sent by each
  // Of ranks that train together: their number, and what of a step is their part's work, and communication that nothing hides.
  int64_t ranks = 1;
  double part_seconds = -1, exposed_seconds = -1;
  struct OnNetwork {
    double gigabits_a_second = 0, exposed_seconds = 0;
  };
  std::vector<OnNetwork> networks = {};  // that nobody measured: what they would add
  std::string basis;                     // of the times: "timed here", "..."
};

// A model of this many layers and this width, trained for a given time.
struct ShapeForTime {
  double seconds = 0;
  int64_t layers = 0, width = 0, parameters = 0;
  double tokens_per_second = 0, tokens = 0;
  double epochs = 0;           // of the job's data
  bool data_is_short = false;  // more than kUsefulEpochs of it
};

// A published model that a classifier could start from.
struct ModelChoice {
  std::string name, download;  // DistilBERT; for `hf download`
  int64_t layers = 0, width = 0, parameters = 0;
  double flop_per_token = 0;
  int64_t memory_bytes = 0, model_bytes = 0;
  bool fits = false;
  double tokens_per_second = -1, epoch_seconds = -1;
  std::string basis;
};

struct JobPlan {
  std::string name, path;
  Job job;
  JobSize size;
  std::string precision;
  int64_t memory_available = 0;  // of the machine it is planned for
  Outlook outlook;               // there
  std::optional<Outlook> here;   // where that is another machine than this one
  std::optional<StepTimes> times;
  std::vector<Outlook> what_if;
  std::vector<ShapeForTime> shapes;
  std::vector<ModelChoice> models;
  std::vector<std::string> notes;
};

// What lies between ranks, as `brisk launch -n N machine --json` measures it (bench/rank_transfers.h), or as somebody describes
// it by latency and bandwidth alone.
struct RankNetwork {
  struct Transfer {
    double bytes = 0, seconds = 0;
  };
  int64_t size = 1, of_machine = 1;  // ranks, and how many of them share a machine's memory
  std::string transport;
  int64_t threads = 0;                                    // of a rank; 0: not told
  double latency_seconds = 0;                             // of a message
  double bytes_per_second = 0;                            // that each rank sends while it receives as much
  double gather_seconds = 0;                              // a number of each rank to all; 0: not measured
  std::vector<Transfer> sum, share;                       // of gradients and weights, by bytes; empty: not measured
  double sum_overlap = 0, share_overlap = 0;              // of these, what computing may hide
  double fp32_products = 0, bf16_products = 0, copy = 0;  // of the slowest rank while all compute; 0: not told
};

// A machine as `brisk machine --json` writes it: what a plan needs of it.
struct MachineRates {
  std::string path;  // of the file; empty: this machine
  std::string name;
  int64_t cores = 0;
  int64_t memory_bytes = 0;  // that a training may take, on what trains
  bool on_gpu = false;
  double fp32_products = 0, bf16_products = 0;  // GFLOP/s; 0: not supported
  double fp32_peak = 0;                         // in registers, of the CPU; 0: of a GPU, which does not say
  double copy_gb_per_second = 0;
  std::optional<RankNetwork> ranks;  // of several that train together; the figures above are those of one
};

struct Planning {
  std::vector<JobPlan> jobs;  // one, or two to be compared
  MachineRates here;
  std::optional<MachineRates> other;  // that it is planned for
  double seconds = 0;                 // that planning took
};

}  // namespace brisk
