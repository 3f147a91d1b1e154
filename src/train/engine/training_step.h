// One optimizer step, on any device: every micro-batch forward and backward, the gradient's norm, clipping and limits,
// the update, the result.
//
//   TrainingStep training(*backend, store, *optimizer, {.max_grad_norm = 1, .seed = 5});
//   const StepResult result = training.run(batch, step, rate, ledger, limits);
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "base/ledger.h"
#include "data/batch/batch.h"
#include "optim/loss_scale.h"
#include "optim/optimizer.h"
#include "tensor/parameter.h"
#include "train/engine/gradient_exchange.h"
#include "train/engine/process_group.h"
#include "train/engine/step_backend.h"

namespace brisk {

struct StepResult {
  double loss_sum = 0;  // over the step's targets, each times its weight
  int64_t correct = 0;
  int64_t targets = 0;
  double weight_sum = 0;  // of the targets; their number where they have no weights
  // Of all processes: tokens (of a language model each is a target) and their sequences; and the rows that were computed,
  // which are more where the job asks for padding.
  int64_t tokens = 0, sequences = 0, rows = 0;
  double gradient_norm = 0;
  bool updated = false;     // false: not finite, or above a limit
  bool overflowed = false;  // the gradient was beyond f16: not updated, and scaled less from now on
  double scaling = 1;       // of the gradients that the parameters still hold (optim/loss_scale.h)
  bool finite() const;
  double loss() const;  // the mean
};

// A step above either is computed, but not applied.
struct UpdateLimits {
  double gradient_norm = std::numeric_limits<double>::infinity();
  double loss = std::numeric_limits<double>::infinity();  // mean over the step's targets
};

// The batch of the step after this, or null where there is none yet. It need not outlive the call.
using NextBatch = std::function<const StepBatch*()>;

class TrainingStep {
 public:
  struct Options {
    double max_grad_norm = 1;  // 0: no clipping
    uint64_t seed = 1;
    bool scales_loss = false;  // for products in f16
    GradientExchange::Options exchange = {};
    GradientReady gradient_ready = {};  // EngineOptions::gradient_ready
  };
  // What it is given must outlive it. `transport`: where there are several ranks.
  TrainingStep(StepBackend& backend, const ParameterStore& store, Optimizer& optimizer, ProcessGroup& processes,
               std::unique_ptr<ShardTransport> transport, const Options& options);

  // Engine::train_step().
  StepResult run(const StepBatch& batch, int64_t step, double rate, Ledger& ledger, const UpdateLimits& limits,
                 const NextBatch& next);
  // Drops the pass of the next step, where one was begun: parameters change from outside, or another batch comes.
  void cancel_next_pass();

  GradientExchange& exchange() { return exchange_; }
  const GradientExchange& exchange() const { return exchange_; }

  LossScale* loss_scale() { return loss_scale_ ? &*loss_scale_ : nullptr; }

 private:
  struct Pass {
    int64_t step = 0;
    int64_t own_rows = 0;
    int64_t tokens = 0, sequences = 0, rows = 0;  // of all processes
  };
  void run_pass(const StepBatch& batch, int64_t step, bool may_sample, Ledger& ledger);
  void update(int64_t step, double rate, Ledger& ledger, const UpdateLimits& limits);
  double scaling() const { return loss_scale_ ? loss_scale_->scale : 1.0; }

  StepBackend& backend_;
  Optimizer& optimizer_;
  ProcessGroup& processes_;
  GradientExchange exchange_;
  Options options_;
  bool is_on_gpu_;
  std::optional<LossScale> loss_scale_;
  std::optional<Pass> pass_;  // that has run or is queued, and whose update is not
};

}  // namespace brisk
