// A micro-batch in device memory.
//
//   BatchBuffer buffer(device, {.rows = 4096, .sequences = 64, .longest = 128});
//   const DeviceBatch::Set rows = buffer.load(micro_batch);   // tokens, positions, targets, ... as the ops read them
#pragma once

#include <vector>

#include "data/batch.h"
#include "tensor/device.h"
#include "tensor/program.h"

namespace brisk {

class BatchBuffer {
 public:
  // `picked`: of the second row set, where the model has one.
  BatchBuffer(Device& device, const RowCapacity& capacity, const RowCapacity& picked = {});

  // Copies the batch to the device; the result points into this buffer and is valid until the next load. The first row
  // set alone:
  DeviceBatch::Set load(const MicroBatch& batch);
  // Both sets where there is capacity for two.
  void load(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets);

  static int64_t bytes(const RowCapacity& capacity, const RowCapacity& picked = {});

 private:
  RowCapacity capacity_, picked_capacity_;
  Buffer buffer_;
};

}  // namespace brisk
