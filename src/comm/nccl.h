// NCCL: what ranks that each compute on a GPU say to each other, from memory of one GPU to that of another. The library
// (libnccl.so.2) is loaded when it is first needed; nothing of it is linked and no header of it is used.
// BRISK_NCCL_LIBRARY names another.
//
//   std::unique_ptr<Nccl> gpus = open_nccl(ranks);              // collective; over the communicator that is there anyway
//   gpus->reduce_to_owners(gradient, begin, end, bounds, queue); // summed as NCCL likes, while the GPU does something else
//   gpus->exchange_ranges(gradient, bounds, 0, most, parts, queue); // or: everybody's floats of my range, to be added here
//   gpus->share_ranges(weights, byte_bounds, queue);
//   ... waiting for the GPU: gpus->check(), now and then
//
// Everything is queued on a stream of the GPU (DeviceQueue::handle()) and returns at once. All ranks queue the same
// operations in the same order, and none of them while a graph is recorded (docs/decisions.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comm/communicator.h"

namespace brisk {

class Nccl {
 public:
  virtual ~Nccl() = default;
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  using Stream = void*;  // a cudaStream_t

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string version() const = 0;  // "NCCL 2.28.9"

  // [begin, end) of `data`, or what of it lies in a rank's range of `bounds`, is summed over all ranks and put into `data` of
  // that rank; the others' is left as it was. The order of the sum is the library's affair.
  virtual void reduce_to_owners(float* data, int64_t begin, int64_t end, std::span<const int64_t> bounds,
                                Stream stream) = 0;
  // For sums whose order is our affair. Of each rank's range a piece, at most `most` elements from `offset` on, goes to that
  // rank: `parts` [size(), elements of this rank's piece] gets it from all ranks, itself included.
  virtual void exchange_ranges(const float* data, std::span<const int64_t> bounds, int64_t offset, int64_t most,
                               float* parts, Stream stream) = 0;
  // As Communicator's.
  virtual void share_ranges(void* data, std::span<const int64_t> bounds, Stream stream) = 0;
  virtual void collect_ranges(void* data, std::span<const int64_t> bounds, int root, Stream stream) = 0;
  virtual void all_gather(const void* own, void* all, int64_t bytes, Stream stream) = 0;

  // While something is waited for that was queued: RankFailed where it will never come, because another rank or its network is
  // gone. Then nothing that was queued is waited for any more, and nobody may use this again.
  virtual void check() = 0;
  // Gives up what is queued, so that the GPU comes to an end of it. After it, and after check() has thrown: check() throws.
  virtual void abort() noexcept = 0;

 protected:
  Nccl() = default;
};

// Collective over `ranks`, which carries NCCL's id and knows who is gone; it must outlive the result. The GPU that is current
// in this thread is this rank's. UserError in every rank where the library is missing or too old on one, or is not the same.
std::unique_ptr<Nccl> open_nccl(Communicator& ranks);

}  // namespace brisk
