// AdamW: one pass reads the gradient and rewrites the master, both moments and the compute copy.
//
//   AdamW adamw(store, {.weight_decay = 0.1});
//   adamw.update(numbers);                        // optim/optimizer.h
#pragma once

#include <vector>

#include "ops/optimizer/update.h"
#include "optim/optimizer.h"
#include "tensor/device.h"

namespace brisk {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // for parameters that decay: matrices, not norms and biases
};

class AdamW : public Optimizer {
 public:
  // The parameters of the shard have two moments.
  AdamW(const ParameterStore& store, const AdamWOptions& options, const ParameterShard& shard = {});

  int64_t state_bytes() const override;
  int64_t workspace_bytes(bool /*on_gpu*/) const override { return 0; }
  void set_rates(int64_t step, double rate, StepNumbers& numbers) const override;
  void update(const StepNumbers* numbers) override;

 private:
  void update_on_cpu(const StepNumbers& numbers) const;
  void update_on_gpu(const StepNumbers* numbers) const;

  const ParameterStore& store_;
  AdamWOptions options_;
  ParameterShard shard_;
  std::vector<AdamWRun> runs_;
  Buffer gpu_runs_;  // the same, on a GPU
};

}  // namespace brisk
