// How a step's gradient comes together: from the parts that this process computes one after the other, and from the ranks that
// train together.
//
//   GradientExchange exchange(store, state, processes, transport, {.parts = 8, .has_muon = true, .bucket = 1 << 20});
//   exchange.begin_pass();
//   ... a part's forward and backward; exchange.end_part(is_empty)
//   exchange.end_pass();            // the sum of this process's parts lies in the flat gradient, or is on its way
//   exchange.reduce();              // of all ranks, in the range that this rank updates
//   exchange.measure();             // its squared norm, as StepState::measure()
//   ... exchange.sum(); decide, update
//   exchange.share();               // everybody has the new weights
//
// A step has as many parts as there are ranks, or a fixed number of them (training.logical_ranks), a power of two. Parts are
// added neighbours first (base/sum_tree.h), so what comes out depends on the number of parts and not on that of the ranks. The
// norm likewise: of as many shards of the gradient as there are parts.
//
// With buckets, a rank's gradient leaves bucket by bucket while the backward of its last micro-batch goes on (listen()):
// parameters lie in memory in the order in which backward completes them. Then the main thread makes no collective call between
// begin_pass() and reduce().
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/optimizer/step_state.h"
#include "tensor/device.h"
#include "tensor/parameter.h"
#include "train/engine/process_group.h"
#include "train/engine/shard_transport.h"
#include "train/engine/step_backend.h"

namespace brisk {

// Of several ranks, so far.
struct CommunicationTotals {
  double hidden_seconds = 0;  // in which data moved, or waited for other ranks, while this rank computed
  int64_t bytes_sent = 0;     // to other ranks
};

class GradientExchange {
 public:
  struct Options {
    int64_t parts = 1;  // of a step, over all ranks, each of which has equally many
    bool has_muon = false;
    int64_t bucket = 0;  // elements of the gradient that leave at once; 0: all of them, after the pass
  };
  // What it is given must outlive it; the store has its memory. `transport`: where there are several ranks.
  GradientExchange(const ParameterStore& store, StepState& state, ProcessGroup& processes,
                   std::unique_ptr<ShardTransport> transport, const Options& options);

  // What a back end calls of it in the last micro-batch of the last part; nothing where nothing leaves before the end.
  GradientListener listener();

  void begin_pass();
  // After a part's last micro-batch; `is_empty`: it had none.
  void end_part(bool is_empty);
  void end_pass();

  bool has_ranks() const { return transport_ != nullptr; }
  int64_t own_parts() const { return own_parts_; }
  void reduce();
  void measure();
  void sum();  // the norm and the sums of the loss over all processes
  void share();
  CommunicationTotals communication() const;

  // The range that this rank updates.
  int64_t begin() { return rank_bounds_[static_cast<size_t>(processes_.rank())]; }
  int64_t end() { return rank_bounds_[static_cast<size_t>(processes_.rank()) + 1]; }

  void collect_gradient();  // to the first rank: the whole of it, after reduce()
  // Masters that products do not read stay with the rank that updates them (share()): this brings them to everybody.
  void share_masters();

  // Bytes for a gradient of so many elements in so many parts a process, in addition to the gradient itself.
  static int64_t part_bytes(int64_t elements, int64_t own_parts);

 private:
  bool leaves_early() const { return has_ranks() && bucket_ > 0; }
  void clear_gradient();
  void add_waiting(int64_t begin, int64_t end);
  void send_until(int64_t complete);
  void send_rest();
  std::vector<int64_t> rank_bounds_in_bytes(int64_t element_bytes) const;
  // On CPUs, where products read rounded copies, masters that nothing else reads stay with the rank that updates them.
  bool keeps_masters_apart() const;
  void find_shared_masters();
  void share_with_copies();

  const ParameterStore& store_;
  StepState& state_;
  ProcessGroup& processes_;
  std::unique_ptr<ShardTransport> transport_;
  int64_t own_parts_, bucket_;
  std::vector<int64_t> bounds_;       // of the shards whose norms are added
  std::vector<int64_t> rank_bounds_;  // of the ranges of ranks, each some of these shards
  std::vector<Buffer> waiting_;       // sums of 1, 2, 4, ... parts that wait for a neighbour
  // Where products read rounded copies: the masters that something else reads, in the order of the flat arrays. Short runs
  // travel together.
  struct Run {
    int64_t begin, end;
  };
  std::vector<Run> long_runs_, short_runs_;
  std::vector<int64_t> short_bounds_;  // of the ranks' elements of short runs, one after the other
  Buffer short_;
  // Of the pass:
  int64_t parts_done_ = 0;
  int64_t sent_ = 0;      // elements, from the beginning
  bool is_sent_ = false;  // all of it: with the last micro-batch, perhaps by a graph that was replayed
};

}  // namespace brisk
