// Times training steps, including loader, clipping, optimizer and logging; of one process, or of several that divide each step.
//
//   const PrecisionChoice precision = ...;
//   const MeasuredSteps measured = measure_steps(engine, loader, {.seconds = 10});
//   BenchFigures figures = figures_of(measured, engine, precision);
//   figures.set_speed(tokens_per_second, flop_per_token);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/gpu/gpu_watch.h"
#include "base/ledger.h"
#include "data/batch/loader.h"
#include "infer/device_choice.h"
#include "infer/precision.h"
#include "train/engine/engine.h"

namespace brisk {

struct MeasureOptions {
  double seconds = 10;
  int64_t least_steps = 3;
  double rate = 3e-4;
};

// Compute threads as they were asked for; 0: all cores, or this rank's share of them.
void set_bench_threads(int64_t threads, ProcessGroup* processes);
// Collective: several processes compute on a GPU each, as in training (train/run/plan/rank_gpu.h), or on CPUs.
DeviceChoice choose_bench_device(const std::string& device, ProcessGroup* processes);
// `own` may have been measured: that of the first process, in all of them.
PrecisionChoice agreed_precision(PrecisionChoice own, ProcessGroup* processes);
// Of a step of so many sequences: which of them this process computes, and how many at most.
StepShare share_of_step(ProcessGroup* processes);
int64_t sequences_of_share(int64_t sequences, ProcessGroup* processes);

// What one of several processes did in the measured steps.
struct RankFigures {
  double tokens_per_second = 0;      // of its own tokens
  double compute_seconds = 0;        // forward, backward, clipping, optimizer
  double communication_seconds = 0;  // exposed: in which it did nothing else, waiting for slower ones included
  double seconds = 0;
  int64_t peak_memory_bytes = 0;
};

struct MeasuredSteps {
  int64_t steps = 0, tokens = 0, sequences = 0;  // of all processes
  double median_seconds = 0;                     // of a step
  double peak_gflops = 0;                        // of the machine, sampled between the steps
  double first_step_seconds = 0;  // from the start of the process to the end of the first step, warm-up or not
  int64_t warm_up_steps = 0;      // before those that were measured
  GpuMemory memory;               // of a GPU
  std::optional<GpuSummary> gpu;  // what it said of itself meanwhile
  Ledger::Totals ledger;          // of the steps, without the samples
  int world_size = 1;
  std::string transport;           // of several processes: "shared memory"
  std::vector<RankFigures> ranks;  // of each; empty: there is one
};

// After two steps to warm up; on a GPU, which chooses algorithms by timing and records a graph for each size that it
// meets, after as many as it takes until nothing was new in `least_steps` of them (20 s at most). Sizes of ragged
// batches that are met later still are not in the figures.
MeasuredSteps measure_steps(Engine& engine, Loader& loader, const MeasureOptions& options);

// What every benchmark tells.
struct BenchFigures {
  double tokens_per_second = 0;  // real ones: there are no others
  double gflops = 0, peak_gflops = 0, utilisation = 0;
  double step_ms = 0;  // median
  int64_t steps = 0, parameters = 0;
  int64_t peak_memory_bytes = 0;     // of the process; on a GPU: there, CUDA's own memory included
  int64_t peak_allocated_bytes = 0;  // on a GPU: what brisk itself allocated, as torch.cuda.max_memory_allocated counts
  double first_step_seconds = 0;
  int64_t warm_up_steps = 0;
  std::optional<GpuSummary> gpu;
  std::string precision, isa, device, reason;
  Ledger::Totals ledger;  // of the measured steps, in this process
  int world_size = 1, rank = 0;
  std::string transport;
  std::vector<RankFigures> ranks;  // empty: there is one

  void set_speed(double tokens_a_second, double flop_per_token);
};

// All but the speed, which each benchmark takes in its own way.
BenchFigures figures_of(const MeasuredSteps& measured, Engine& engine, const PrecisionChoice& precision);

}  // namespace brisk
