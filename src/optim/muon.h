// Muon: the momentum of a hidden matrix, orthogonalised (ops/optimizer/muon.h). It updates hidden matrices alone.
//
//   Muon muon(store, {.rate_ratio = 2.5});        // at 2.5 times the schedule's rate
//   muon.update(numbers);                         // optim/optimizer.h
//
// The momentum is kept where AdamW has its first moment; a store allocated with Moments::one_of_hidden has no second
// one for these matrices.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/optimizer/muon.h"
#include "optim/optimizer.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace brisk {

struct MuonOptions {
  double rate_ratio = 1;  // of Muon's rate to the rate of the schedule, which is AdamW's
  double momentum = 0.95;
  double weight_decay = 0.1;
  GemmFormat products = GemmFormat::own;  // on a GPU
};

class Muon : public Optimizer {
 public:
  // Takes the hidden matrices of the shard; Q, K and V in one weight are three.
  Muon(const ParameterStore& store, const MuonOptions& options, const ParameterShard& shard = {});

  int64_t state_bytes() const override;
  int64_t workspace_bytes(bool on_gpu) const override;
  void set_rates(int64_t step, double rate, StepNumbers& numbers) const override;
  void update(const StepNumbers* numbers) override;

 private:
  const ParameterStore& store_;
  MuonOptions options_;
  std::vector<MuonMatrix> matrices_;
  Buffer workspace_;
};

}  // namespace brisk
