// A micro-batch in device memory.
//
//   BatchBuffer buffer(device, tape);
//   std::vector<DeviceBatch::Set> sets;
//   buffer.load(micro_batch, sets);      // tokens, positions, targets, ... of each row set, as the ops read them
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "data/batch/batch.h"
#include "tensor/device.h"
#include "tensor/program.h"

namespace brisk {

class BatchBuffer {
 public:
  // Of row sets of these capacities, without matrices.
  BatchBuffer(Device& device, std::vector<RowCapacity> capacities);
  // What the ops of a tape read.
  BatchBuffer(Device& device, const Tape& tape);

  // Copies the batch to the device; the sets point into this buffer and are valid until the next load, which on a GPU
  // must not come before what was queued with it is done. Sets beyond the capacities are left out.
  void load(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets);
  // On a GPU: put together in staging memory `slot`, which must not be in use any more, sent to the GPU while that is
  // busy (DeviceInlet), and in its place for what is queued next; rows and sequences are rounded up to sizes that come
  // again, so that a recorded graph can be. Rows of no sequence have no targets, and their gradients are 0. Where
  // columns lie depends on nothing but which of them there are.
  void queue(const MicroBatch& batch, size_t slot, std::vector<DeviceBatch::Set>& sets);

  static int64_t column_bytes(std::span<const RowCapacity> capacities);  // of all but matrices
  static int64_t bytes(const Tape& tape);

 private:
  struct Release {
    Device* device;
    void operator()(char* staging) const { device->release_staging(staging); }
  };
  void load_columns(const MicroBatch& batch, char* staging, bool rounds, std::vector<DeviceBatch::Set>& sets);
  void load_matrices(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets);
  char* staging(size_t slot);

  std::vector<RowCapacity> capacities_;  // per set; so are
  std::vector<BatchMatrices> matrices_;
  int64_t input_size_ = 0;  // bytes of an element of the inputs
  Buffer buffer_;
  // On a GPU a batch is put together here, as it will lie there, and copied at once.
  std::vector<std::unique_ptr<char, Release>> staging_;
  std::unique_ptr<DeviceInlet> inlet_;  // made at the first queue()
};

}  // namespace brisk
