// An optimizer step on a card, from the loss's sums to the new parameters, without asking the host: the clipping factor
// and whether the step counts at all are decided there. The host waits once, in result().
//
//   CardStep step(store, adamw, muon, /*max_norm=*/1);
//   step.begin({.step = 7, .rate = 1e-3, .loss_scale = 1.0 / targets});
//   ... forward and backward of each micro-batch, with step.numbers() in its DeviceBatch; step.add_loss(sums, first)
//   step.decide();
//   step.update();
//   StepNumbers numbers = step.result();
#pragma once

#include <limits>
#include <vector>

#include "ops/update.h"
#include "optim/adamw.h"
#include "optim/muon.h"
#include "tensor/parameter.h"

namespace brisk {

class CardStep {
 public:
  // `muon` may be null. The store lies on a card.
  CardStep(const ParameterStore& store, const AdamWOptions& adamw, Muon* muon, double max_norm);
  ~CardStep();
  CardStep(const CardStep&) = delete;
  CardStep& operator=(const CardStep&) = delete;

  struct Settings {
    int64_t step = 1;
    double rate = 0;
    double loss_scale = 1;
    uint64_t seed = 0;
    // Above one of these the step is not applied.
    double norm_limit = std::numeric_limits<double>::infinity();
    double loss_limit = std::numeric_limits<double>::infinity();
    double scaling = 1;  // of the gradient (optim/loss_scale.h)
  };
  void begin(const Settings& settings);
  // Of a micro-batch; `first` of its step.
  void add_loss(const Tensor& sums, bool first);
  void decide();  // the gradient's norm, and whether the step counts
  void update();
  StepNumbers result();

  const StepNumbers* numbers() const { return static_cast<const StepNumbers*>(numbers_.data()); }  // on the card

 private:
  const ParameterStore& store_;
  AdamWOptions adamw_;
  Muon* muon_;
  double max_norm_;
  AdamWRuns update_;
  Buffer numbers_, runs_;
  StepNumbers* staging_;
};

}  // namespace brisk
