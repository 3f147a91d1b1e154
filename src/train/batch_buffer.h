// A micro-batch in device memory.
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
  // What the ops of a tape read.
  BatchBuffer(Device& device, const Tape& tape);

  // Copies the batch to the device; the result points into this buffer and is valid until the next load. The first row
  // set alone:
  DeviceBatch::Set load(const MicroBatch& batch);
  // Both sets where there is capacity for two.
  void load(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets);

  static int64_t bytes(const RowCapacity& capacity, const RowCapacity& picked = {});
  static int64_t bytes(const Tape& tape);

 private:
  void load_matrices(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets);

  RowCapacity capacity_, picked_capacity_;
  std::vector<BatchMatrices> matrices_;  // per set
  int64_t input_size_ = 0;               // bytes of an element of the inputs
  Buffer buffer_;
};

}  // namespace brisk
