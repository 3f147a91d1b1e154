// An optimizer step on a GPU, from the loss's sums to the new parameters, without asking the host: the clipping factor
// and whether the step counts at all are decided there. The host waits once, in result().
//
//   GpuStep step(store, adamw, muon, /*max_norm=*/1);
//   step.begin_pass(7, 1.0 / targets, seed);
//   ... forward and backward of each micro-batch, with step.numbers() in its DeviceBatch; step.add_loss(sums, first)
//   step.begin_update({.step = 7, .rate = 1e-3});       // what depends on how step 6 went
//   step.decide();
//   step.update();
//   step.publish();
//   step.finish();
//   ... the pass of step 8 may be queued here
//   StepNumbers numbers = step.result();                // of step 7
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "ops/optimizer/update.h"
#include "optim/adamw.h"
#include "optim/muon.h"
#include "tensor/parameter.h"

namespace brisk {

class GpuStep {
 public:
  // `muon` may be null. The store lies on a GPU.
  GpuStep(const ParameterStore& store, const AdamWOptions& adamw, Muon* muon, double max_norm);
  ~GpuStep();
  GpuStep(const GpuStep&) = delete;
  GpuStep& operator=(const GpuStep&) = delete;

  struct Settings {
    int64_t step = 1;
    double rate = 0;
    // Above one of these the step is not applied.
    double norm_limit = std::numeric_limits<double>::infinity();
    double loss_limit = std::numeric_limits<double>::infinity();
    double scaling = 1;  // of the gradient (optim/loss_scale.h)
  };
  void begin_pass(int64_t step, double loss_scale, uint64_t seed);
  void begin_update(const Settings& settings);
  // Of a micro-batch; `first` of its step.
  void add_loss(const Tensor& sums, bool first);
  void decide();  // the gradient's norm, and whether the step counts
  void update();
  void publish();        // queues the way back of the numbers; as the three above it can be recorded
  void finish();         // marks where result() waits
  bool is_done();        // so far
  StepNumbers result();  // of the step that was finished last; waits for it

  const StepNumbers* numbers() const { return static_cast<const StepNumbers*>(numbers_.data()); }  // on the GPU

 private:
  const ParameterStore& store_;
  AdamWOptions adamw_;
  Muon* muon_;
  double max_norm_;
  AdamWRuns update_;
  Buffer numbers_, runs_;
  StepNumbers* staging_;
  std::unique_ptr<DeviceMark> done_;
};

}  // namespace brisk
