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
#include <utility>

#include "base/ledger.h"
#include "comm/nccl.h"
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

// Hears of the gradients of a step while its backward goes on.
struct GradientListener {
  GradientReady ready;               // Program::backward, of the micro-batch that completes them
  std::function<void()> after_last;  // after that backward
  // Of a GPU, after these two were called while a graph was recorded: what is to be called whenever that graph was queued.
  std::function<std::function<void()>()> take_recorded;
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
  // Both, of a GPU, only where work is queued op by op or recorded, not where a graph is replayed.
  void listen(GradientListener listener) { listener_ = std::move(listener); }
  // Gradients and sums of the loss; `first` of the gradient that is made, `last`: it is complete with this one.
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

 protected:
  // Backward of a micro-batch; the listener hears of it where it is the `last`.
  void run_backward(Program& program, const DeviceBatch& batch, bool last, Ledger& ledger) {
    program.backward(batch, ledger, last ? listener_.ready : GradientReady());
    if (last && listener_.after_last) listener_.after_last();
  }
  std::function<void()> take_recorded() {
    return listener_.take_recorded ? listener_.take_recorded() : std::function<void()>();
  }
  bool is_heard() const { return listener_.ready || listener_.after_last; }

 private:
  StepState state_;
  GradientListener listener_;
};

// `training` must outlive it.
std::unique_ptr<StepBackend> make_cpu_backend(Device& device, TrainingProgram& training);
// `gpus`: what connects it to the GPUs of other ranks, asked how it is while the host waits; null: nothing does.
std::unique_ptr<StepBackend> make_gpu_backend(Device& device, TrainingProgram& training, Nccl* gpus = nullptr);

}  // namespace brisk
