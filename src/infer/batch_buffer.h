// A micro-batch in device memory.
//
//   BatchBuffer buffer(device, {.rows = 4096, .sequences = 64, .longest = 128});
//   const DeviceBatch::Set rows = buffer.load(micro_batch);   // tokens, positions, targets, ... as the ops read them
#pragma once

#include <memory>
#include <vector>

#include "data/batch/batch.h"
#include "tensor/device.h"
#include "tensor/program.h"

namespace brisk {

class BatchBuffer {
 public:
  // `picked`: of the second row set, where the model has one.
  BatchBuffer(Device& device, const RowCapacity& capacity, const RowCapacity& picked = {});
  // What the ops of a tape read.
  BatchBuffer(Device& device, const Tape& tape);

  // Copies the batch to the device; the result points into this buffer and is valid until the next load, which on a
  // GPU must not come before what was queued with it is done. The first row set alone:
  DeviceBatch::Set load(const MicroBatch& batch);
  // Both sets where there is capacity for two.
  void load(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets);
  // On a GPU: put together in staging memory `slot`, which must not be in use any more, sent to the GPU while that is
  // busy (DeviceInlet), and in its place for what is queued next; rows and sequences are rounded up to sizes that come
  // again, so that a recorded graph can be. Rows of no sequence have no targets, and their gradients are 0.
  void queue(const MicroBatch& batch, size_t slot, std::vector<DeviceBatch::Set>& sets);

  static int64_t bytes(const RowCapacity& capacity, const RowCapacity& picked = {});
  static int64_t bytes(const Tape& tape);

 private:
  struct Release {
    Device* device;
    void operator()(char* staging) const { device->release_staging(staging); }
  };
  void load_matrices(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets);

  RowCapacity capacity_, picked_capacity_;
  std::vector<BatchMatrices> matrices_;  // per set
  int64_t input_size_ = 0;               // bytes of an element of the inputs
  Buffer buffer_;
  // On a GPU a batch is put together here, as it will lie there, and copied at once.
  std::vector<std::unique_ptr<char, Release>> staging_;
  std::unique_ptr<DeviceInlet> inlet_;  // made at the first queue()

  char* staging(size_t slot);
  void load(const MicroBatch& batch, char* staging, bool rounds, std::vector<DeviceBatch::Set>& sets);
};

}  // namespace brisk
