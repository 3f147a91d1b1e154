// What the doctor measured of a job on this machine: numbers, and no opinion of them. Rules (doctor/judge/rules.h) read
// nothing else, so what cannot be provoked here is tested on readings that were recorded or written by hand.
//
//   Readings readings = ...;
//   const std::string recorded = readings_to_json(readings);
//   const Readings again = readings_from_json(recorded, "recorded.json");
//
// Negative numbers are unknown unless the comment says otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/ledger.h"
#include "job/job.h"

namespace brisk {

struct MachineReadings {
  std::string cpu_model, isa;
  int64_t cores = 1;               // that this process may use (affinity, quota)
  int64_t logical_processors = 1;  // of the machine
  double quota_cores = -1;         // of the cgroup; negative: no quota
  int64_t memory_total_bytes = -1, memory_available_bytes = -1;
  bool has_bf16 = false;  // instructions for bf16 products, on what trains
  // GFLOP/s by number format ("fp32", "bf16", ...) of what trains: in registers, and in large products. Missing: not
  // supported.
  std::map<std::string, double> peak_gflops, product_gflops;
  double memory_gb_per_second = -1;  // copy
  double gpu_launch_seconds = -1;    // of the least kernel of a graph
  std::vector<std::string> gpus;     // their names
  std::string no_gpu;                // why there is none, in words
  std::string visible_devices;       // CUDA_VISIBLE_DEVICES; "unset" where it is not set
};

struct DataReadings {
  int64_t sequences = 0;  // of an epoch
  double tokens = 0;      // of an epoch, padding not counted
  int64_t longest = 0, median = 0, p90 = 0, p99 = 0;
  double mean = 0;
  // [first, last] length of a bucket and how many sequences are in it, ascending.
  struct Bucket {
    int64_t first = 0, last = 0, sequences = 0;
  };
  std::vector<Bucket> lengths;
  int64_t cut = -1;             // texts that are longer than max_length and lose their end
  double padded_rows = -1;      // of an epoch, as training.padding has it, padding included; = tokens without
  double distinct_tokens = -1;  // of the vocabulary that an epoch has
  std::string file_system;      // where the token file lies, if it is a remote one ("nfs"); else empty
};

// What a component of the model costs (models/model_costs.h).
struct ComponentReadings {
  std::string name;
  int64_t parameters = 0;
  double flop_per_token = 0;
};

struct ModelReadings {
  int64_t parameters = 0, trained_parameters = 0;
  int64_t vocabulary = 0, width = 0, layers = 0;
  double flop_per_token = 0;  // training
  std::vector<ComponentReadings> components;
  double attention_flop_share = 0;  // of scores and their use: what grows with the square of the length
  double head_flop_share = 0;       // projection onto the vocabulary or classes, and its gradients
  int64_t optimizer_bytes = 0;      // read and written by an update
  double optimizer_flop = 0;        // of an update's matrix products (Muon), in fp32 on a CPU
  std::string precision;            // in which it computes: fp32, bf16, ...
};

struct GpuReadings {
  std::string name;
  double busy_share = -1;  // of the time, by the driver
  double idle_share = -1;  // of the time between the first and the last kernel of steps in which none ran
  double copy_share = -1;  // of the time, copies between host and GPU that nothing else overlapped
  // mean_kernel: what a kernel takes beyond launch_seconds, which the least one takes.
  double kernels_per_step = -1, mean_kernel_seconds = -1, launch_seconds = -1;
  double tensor_core_share = -1;  // of the FLOP, products that ran on them
  double sm_mhz = -1, max_sm_mhz = -1, watts = -1, watt_limit = -1, celsius = -1;
  std::map<std::string, double> throttled;  // reason ("power cap", "thermal", "hardware slowdown"): share of the time
  int64_t memory_used_bytes = -1, memory_bytes = -1;
};

// Steps of the job that were measured, warm-up left out. Evaluations, checkpoints and samples are not in it.
struct StretchReadings {
  int64_t steps = 0, micro_batches = 0, sequences = 0;
  double tokens = 0;   // real ones
  double rows = 0;     // computed, padding included
  double targets = 0;  // with a loss
  double seconds = 0;
  double median_step_seconds = 0;
  Ledger::Totals ledger;                        // of these steps: its sum is `seconds`
  double forwards_per_step = -1;                // forward passes over each sequence in a step; 1 is what training needs
  double user_seconds = 0, system_seconds = 0;  // processor time of this process
  double waiting_seconds = -1;                  // of all its threads, ready while others had the processors
  double other_seconds = -1;                    // of all other processes of the machine, meanwhile
  int64_t threads = 0;                          // that compute
  int64_t minor_faults = 0, major_faults = 0;
  int64_t swapped_bytes = -1;        // of this process, in swap at the end
  double throttled_seconds = -1;     // in which the cgroup's quota kept it from running
  double disk_wait_seconds = -1;     // in which some thread waited for a disk (/proc/self/stat: delayacct)
  int64_t peak_memory_bytes = 0;     // of the process; of a GPU, there
  int64_t planned_memory_bytes = 0;  // by the memory plan
  GpuReadings gpu;                   // of what trains; name empty: the CPU does
  double sequences_per_step = 0;     // of a whole step of the job
  bool shortened = false;            // measured on steps of fewer sequences than the job's

  double tokens_per_second() const { return seconds > 0 ? tokens / seconds : 0; }
  double rows_per_second() const { return seconds > 0 ? static_cast<double>(sequences) / seconds : 0; }
};

// What happens between the steps of a run, each measured on its own. Seconds of one; how many in an epoch of the job as
// it is written. Zero where it never does.
struct CourseReadings {
  double evaluation_seconds = 0, evaluations_per_epoch = 0;
  double save_seconds = 0, saves_per_epoch = 0;  // seconds: in which the steps wait
  double sample_seconds = 0, samples_per_epoch = 0;
  double logging_seconds = 0, loggings_per_epoch = 0;
  double steps_per_epoch = 0, epochs = 0;
  double start_up_seconds = 0;  // of a run, once
  double seconds_per_epoch() const {
    return evaluation_seconds * evaluations_per_epoch + save_seconds * saves_per_epoch +
           sample_seconds * samples_per_epoch + logging_seconds * loggings_per_epoch;
  }
};

struct VitalSigns {
  bool measured = false;
  int64_t tensors = 0, tensors_changed = 0, tensors_with_gradient = 0;  // of those that are trained
  std::vector<std::string> unchanged, without_gradient;                 // their names, the first few
  double first_loss = -1,
         expected_first_loss = -1;  // ln V or ln C; negative: nothing is expected (measure/first_loss.h)
  double last_loss = -1;            // of the stretch; it is falling where it is clearly below the first
  bool loss_finite = true, loss_falling = true;
  double forwards_per_step = -1;
  double target_share = -1;           // of the tokens, those with a target
  std::vector<std::string> examples;  // the first sequences, decoded as the model sees them, padding shown
};

// Speeds at other settings, measured for a curve.
struct CurvePoint {
  double x = 0;                  // batch: sequences in a micro-batch; threads; ...
  double tokens_per_second = 0;  // or, of the learning rates, nothing
  double loss = -1;              // of learning rates: at the end of the sweep; negative: diverged or not measured
  int64_t memory_bytes = -1;
};

// What an earlier run in the job's output folder says of itself.
struct HistoryReadings {
  std::vector<std::pair<double, double>> training;    // step, loss
  std::vector<std::pair<double, double>> validation;  // step, loss
  double steps_per_epoch = 0;
  std::string best_by;
  // Of a run of several ranks: seconds in which each did nothing but communicate or wait, and of its own work (empty: not
  // told); and of the training in all.
  std::vector<double> rank_communication, rank_work;
  std::vector<std::string> rank_hosts;
  double rank_seconds = 0;
};

struct Readings {
  Job job;  // as it was measured, defaults filled in
  MachineReadings machine;
  DataReadings data;
  ModelReadings model;
  StretchReadings stretch;
  CourseReadings course;
  VitalSigns vital_signs;
  std::vector<CurvePoint> batch_curve;    // tokens/s by sequences of a micro-batch
  std::vector<CurvePoint> thread_curve;   // by training.threads
  std::vector<CurvePoint> process_curve;  // by the processes that share the threads
  std::vector<CurvePoint> rate_curve;     // loss by a factor on the learning rates; x = 1: the job's own
  std::map<std::string, double> precision_tokens_per_second;  // measured for this model, by number format; may be empty
  HistoryReadings history;

  // An update of all parameters, at the measured rate of products and the measured bandwidth.
  double attainable_update_seconds() const;
  // Attainable here: every FLOP at the measured rate of large products, every byte at the measured bandwidth.
  double attainable_tokens_per_second() const;
  // A whole epoch, evaluations, checkpoints and logging included.
  double epoch_seconds() const;
};

// One JSON object; what is read back is equal but for the sources of randomness that JSON numbers lose (none: they are
// written with 17 digits). UserError of a damaged one.
std::string readings_to_json(const Readings& readings);
Readings readings_from_json(const std::string& text, const std::string& source);

}  // namespace brisk
