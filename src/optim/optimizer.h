// An Optimizer updates a part of a store's parameters from their gradients. AdamW and Muon are optimizers, and so is a
// list of them over disjoint parts, which is how hidden matrices get Muon and all other parameters AdamW.
//
//   std::unique_ptr<Optimizer> optimizer = make_optimizer(store, {.weight_decay = 0.1}, MuonOptions{});
//   StepNumbers settings{.max_norm = 1};
//   optimizer->set_rates(step, schedule.at(step), settings);
//   ... the step is decided (ops/optimizer/step_state.h)
//   optimizer->update(state.numbers());
//
// Made for a store that has no memory yet, an optimizer says what it will need; made after ParameterStore::allocate(),
// it can update.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "ops/optimizer/step_numbers.h"
#include "tensor/parameter.h"

namespace brisk {

struct AdamWOptions;
struct MuonOptions;

// Which of the trained parameters an optimizer updates: by default all. A range of the flat arrays is what
// one of several processes owns of them.
struct ParameterShard {
  enum class Kind : uint8_t { all, hidden, not_hidden } kind = Kind::all;
  // Elements of the flat arrays, multiples of 16. AdamW takes the parameters apart there; a matrix of Muon's belongs
  // as a whole to the range in which it begins.
  int64_t begin = 0, end = std::numeric_limits<int64_t>::max();

  bool has(const ParameterSpec& spec) const {
    return spec.trained && (kind == Kind::all || spec.hidden == (kind == Kind::hidden));
  }
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  virtual int64_t state_bytes() const = 0;                 // of the moments, as a checkpoint keeps them
  virtual int64_t workspace_bytes(bool on_gpu) const = 0;  // while it updates, in addition to the store

  // What it reads of a step's numbers, for optimizer step `step` (from 1) at the schedule's `rate`.
  virtual void set_rates(int64_t step, double rate, StepNumbers& numbers) const = 0;
  // `numbers` lie in the store's device memory. Nothing changes unless the step is applied. On a GPU it is queued, and
  // can be recorded in a graph from its second time on.
  virtual void update(const StepNumbers* numbers) = 0;
};

class OptimizerList : public Optimizer {
 public:
  explicit OptimizerList(std::vector<std::unique_ptr<Optimizer>> optimizers) : optimizers_(std::move(optimizers)) {}

  int64_t state_bytes() const override;
  int64_t workspace_bytes(bool on_gpu) const override;
  void set_rates(int64_t step, double rate, StepNumbers& numbers) const override;
  void update(const StepNumbers* numbers) override;

 private:
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
};

// AdamW for all trained parameters; where `muon` is given, it takes the hidden matrices. Of the range [begin, end) of the flat
// arrays alone.
std::unique_ptr<Optimizer> make_optimizer(const ParameterStore& store, const AdamWOptions& adamw,
                                          const std::optional<MuonOptions>& muon, int64_t begin = 0,
                                          int64_t end = std::numeric_limits<int64_t>::max());

}  // namespace brisk
