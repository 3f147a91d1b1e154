// How a training step runs on the CPU and on a GPU. A step is two parts: the pass (forward and backward of all its
// micro-batches) and the update. TrainingStep (train/engine/training_step.h) puts them in order; a back end runs them:
// the CPU at once, a GPU by queueing them, as graphs where sizes recur.
//
//   backend->begin_pass({.step = 7, .seed = seed, .loss_divisor = targets});
//   for (...) backend->run_micro_batch(micro_batch, first, last, ledger);
//   backend->end_pass();
//   backend->run_update([&] { ... });
//   const StepNumbers numbers = backend->result(ledger);
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "base/ledger.h"
#include "data/batch/batch.h"
#include "ops/optimizer/step_state.h"
#include "tensor/program.h"
#include "train/engine/training_program.h"

namespace brisk {

// What a GPU did in the steps since it was watched.
struct GpuWork {
  double busy_seconds = 0;  // from the first kernel to the last of whatever was queued at once, added up
  int64_t kernels = 0;      // of what was replayed from graphs
  bool all_counted = true;  // nothing was queued kernel by kernel
};

class StepBackend {
 public:
  struct Pass {
    int64_t step = 1;
    uint64_t seed = 0;
    double loss_divisor = 1;
    double scaling = 1;      // of the loss (optim/loss_scale.h)
    bool may_sample = true;  // on a GPU: it may be queued op by op, to be measured
  };

  explicit StepBackend(Device& device) : state_(device) {}
  virtual ~StepBackend() = default;

  StepState& state() { return state_; }

  // `has_pass`: that of the step was run ahead.
  virtual void begin_step(bool /*has_pass*/) {}
  virtual void begin_pass(const Pass& pass) = 0;
  // Gradients and sums of the loss; `first` and `last` of its step.
  virtual void run_micro_batch(const MicroBatch& batch, bool first, bool last, Ledger& ledger) = 0;
  virtual void end_pass() {}

  // Runs the update of a step; within it, parts that the ledger tells apart.
  virtual void run_update(const std::function<void()>& work) = 0;
  virtual void run_phase(Phase phase, Ledger& ledger, const std::function<void()>& work) = 0;

  // Whether the pass of the next step may be begun before this one's result is read.
  virtual bool can_run_ahead() const { return false; }
  virtual StepNumbers result(Ledger& ledger) = 0;  // of the last update; waits for it
  virtual void wait() {}                           // until everything is done
  // Engine::settled_passes().
  virtual int64_t settled_passes() const { return std::numeric_limits<int64_t>::max(); }
  // Of a GPU: stamps are queued around all work from now on, until gpu_work() waits for it and reads them.
  virtual void watch_gpu() {}
  virtual GpuWork gpu_work() { return {}; }

 private:
  StepState state_;
};

// `training` must outlive it; `ready` hears of gradients (Program::backward) in the last micro-batch of each step.
std::unique_ptr<StepBackend> make_cpu_backend(Device& device, TrainingProgram& training, GradientReady ready);
std::unique_ptr<StepBackend> make_gpu_backend(Device& device, TrainingProgram& training, GradientReady ready);

}  // namespace brisk
