// What moves the flat arrays of a training step between the ranks that train together: gradients to the ranks that update
// them, new weights to everybody. GradientExchange (train/engine/gradient_exchange.h) says what and when; a transport, how.
// The CPU's stands on a Communicator; a GPU's queues its work on a stream of its own.
//
//   transport->begin_reduce(0, 1 << 20);                   // of the flat gradient, while backward makes the rest
//   transport->begin_reduce(1 << 20, count);
//   transport->wait_for_reduce();                          // the shard of this rank holds the sums over all ranks
//   ... its norm
//   transport->sum(state);                                 // the numbers a step is decided by
//   ... decide, update
//   transport->share(master, bounds_in_bytes);             // everybody has all shards
//
// The contract:
// - All ranks make the same calls with the same ranges in the same order. A range may lie in several shards, or all in one.
// - Sums are taken in an order that depends on the number of ranks alone (base/sum_tree.h), wherever a range is cut: a
//   gradient that is reduced in buckets has the bits of one that is reduced at once. (But on GPUs without `ordered`.)
// - From begin_reduce() until wait_for_reduce() nobody else writes or reads that range, and, on the CPU, this rank makes no
//   other call of the transport or of its Communicator: the transport's thread owns it.
// - After wait_for_reduce() the elements of a range that belong to other ranks' shards are unspecified.
// - On the CPU a range is complete when begin_reduce() is called, and wait_for_reduce(), sum() and share() return when they are
//   done. On a GPU (in_stream_order()) "now" is a place in the stream of the device: begin_reduce() takes what is queued before
//   it, and the others make what is queued after them wait, and return at once. Of these only begin_reduce() may be called while
//   a graph is recorded: then the graph tells the place, and take_recorded() what is to be called whenever it was queued.
// - wait_for_reduce() with nothing begun since the last one does nothing.
// - A rank that is gone makes these calls throw (comm/communicator.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/nccl.h"
#include "ops/optimizer/step_state.h"
#include "tensor/parameter.h"
#include "train/engine/process_group.h"

namespace brisk {

class ShardTransport {
 public:
  virtual ~ShardTransport() = default;
  ShardTransport(const ShardTransport&) = delete;
  ShardTransport& operator=(const ShardTransport&) = delete;

  virtual bool in_stream_order() const = 0;

  // Elements [begin, end) of the flat gradient, each into the rank whose shard has it.
  virtual void begin_reduce(int64_t begin, int64_t end) = 0;
  virtual void wait_for_reduce() = 0;
  virtual std::function<void()> take_recorded() { return {}; }  // of a GPU

  // The squared norm and the sums of the loss, over all ranks; they lie in device memory.
  virtual void sum(StepState& state) = 0;

  // `bounds`: ranks + 1 places in bytes, ascending; range r of rank r goes to all, or to the first rank alone.
  virtual void share(void* data, std::span<const int64_t> bounds) = 0;
  virtual void collect(void* data, std::span<const int64_t> bounds) = 0;

  // So far: time in which data moved, or waited for other ranks, while this rank computed; what this rank sent to others.
  virtual double hidden_seconds() const = 0;
  virtual int64_t bytes_sent() const = 0;

 protected:
  ShardTransport() = default;
};

// Ranks on CPUs. `shards`: ranks + 1 places in the flat gradient, which the store has in memory. `overlaps`: a thread of its
// own moves what is begun, while this rank goes on; otherwise begin_reduce() does it at once, with all threads of the pool.
std::unique_ptr<ShardTransport> make_cpu_transport(const ParameterStore& store, ProcessGroup& processes,
                                                   std::vector<int64_t> shards, bool overlaps);

// Ranks that compute on GPUs: NCCL, on a queue beside the device's own. `ordered`: sums are brisk's own, in the order of
// base/sum_tree.h, and have the same bits for any number of ranks (training.logical_ranks); otherwise NCCL's, which moves and
// keeps less. `state` and `gpus` must outlive it.
std::unique_ptr<ShardTransport> make_nccl_transport(const ParameterStore& store, StepState& state, Nccl& gpus,
                                                    std::vector<int64_t> shards, bool ordered);
// Uses every operation once, so that NCCL takes its memory before anybody plans with what is left, and sees that data arrives as
// it was sent: between some GPUs it does not. Collective; UserError where it does not.
void try_nccl(Device& device, Nccl& gpus);
// What it takes in addition where it is `ordered`, of so many ranks with so many elements each.
int64_t nccl_sum_bytes(int64_t own_elements, int64_t ranks);

}  // namespace brisk
