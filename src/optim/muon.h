// Muon: the momentum of a hidden matrix, orthogonalised (ops/optimizer/muon.h), and AdamW for everything else.
//
//   Muon muon(store, {.rate_ratio = 2.5});         // finds the hidden matrices; Q, K and V in one weight are three
//   muon.step(rate, gradient_scale);               // at rate_ratio * rate
//   adamw_step(store, adamw, step, rate, gradient_scale);   // updates the others
//
// The momentum is kept where AdamW has its first moment; a store allocated with Moments::one_of_hidden has no second
// one for these matrices.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/optimizer/muon.h"
#include "tensor/device.h"
#include "tensor/parameter.h"

namespace brisk {

struct MuonOptions {
  double rate_ratio = 1;  // of Muon's rate to the rate of the schedule, which is AdamW's
  double momentum = 0.95;
  double weight_decay = 0.1;
  ProductFormat products = ProductFormat::own;  // on a GPU
};

class Muon {
 public:
  Muon(const ParameterStore& store, const MuonOptions& options);  // a store allocated for training
  void step(double rate, double gradient_scale);
  void step_on_gpu(const StepNumbers* numbers);  // in device memory: rate_ratio is already in its muon_rate

  const MuonOptions& options() const { return options_; }

  // What the step will need beside the store, before the store has memory.
  static int64_t workspace_bytes(const ParameterStore& store, bool on_gpu = false);

 private:
  const ParameterStore& store_;
  MuonOptions options_;
  std::vector<MuonMatrix> matrices_;
  Buffer workspace_;

  MuonUpdate prepare();
};

}  // namespace brisk
