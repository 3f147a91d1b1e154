// How a step's gradient comes together: from the parts that this process computes one after the other, and from the ranks that
// train together.
//
//   GradientExchange exchange(store, state, processes, {.parts = 8, .has_muon = true});
//   exchange.begin_pass();
//   ... a part's forward and backward; exchange.end_part(is_empty)
//   exchange.end_pass();            // the sum of this process's parts lies in the flat gradient
//   exchange.reduce();              // of all ranks, in the range that this rank updates
//   exchange.measure();             // its squared norm, as StepState::measure()
//   ... decide, update
//   exchange.share();               // everybody has the new weights
//
// A step has as many parts as there are ranks, or a fixed number of them (training.logical_ranks), a power of two. Parts are
// added neighbours first (base/sum_tree.h), so what comes out depends on the number of parts and not on that of the ranks. The
// norm likewise: of as many shards of the gradient as there are parts.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/optimizer/step_state.h"
#include "tensor/device.h"
#include "tensor/parameter.h"
#include "train/engine/process_group.h"

namespace brisk {

class GradientExchange {
 public:
  struct Options {
    int64_t parts = 1;  // of a step, over all ranks, each of which has equally many
    bool has_muon = false;
  };
  // What it is given must outlive it; the store has its memory.
  GradientExchange(const ParameterStore& store, StepState& state, ProcessGroup& processes, const Options& options);

  void begin_pass();
  // After a part's last micro-batch; `is_empty`: it had none.
  void end_part(bool is_empty);
  void end_pass();

  bool has_ranks() { return processes_.size() > 1; }
  void reduce();
  void measure();
  void share();

  // The range that this rank updates.
  int64_t begin() { return rank_bounds_[static_cast<size_t>(processes_.rank())]; }
  int64_t end() { return rank_bounds_[static_cast<size_t>(processes_.rank()) + 1]; }

  // To the first rank: the whole gradient, after reduce(); the moments of all ranges, for a checkpoint.
  void collect_gradient();
  void collect_moments();
  // Gives the memory of moments back that other ranks keep.
  void forget_others_moments();

  // Bytes for a gradient of so many elements in so many parts a process, in addition to the gradient itself.
  static int64_t part_bytes(int64_t elements, int64_t own_parts);

 private:
  struct Sums {
    double loss = 0, weights = 0, correct = 0, targets = 0;
  };
  void clear_gradient();
  std::vector<int64_t> rank_bounds_in_bytes(int64_t element_bytes) const;
  // Of the array of second moments, which has fewer elements.
  std::vector<int64_t> second_moment_bounds() const;

  const ParameterStore& store_;
  StepState& state_;
  ProcessGroup& processes_;
  int64_t own_parts_;
  std::vector<int64_t> bounds_;       // of the shards whose norms are added
  std::vector<int64_t> rank_bounds_;  // of the ranges of ranks, each some of these shards
  std::vector<Buffer> waiting_;       // sums of 1, 2, 4, ... parts that wait for a neighbour
  std::vector<Sums> sums_;            // of the parts so far
};

}  // namespace brisk
