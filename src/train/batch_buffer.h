// A micro-batch in device memory.
#pragma once

#include "data/batch.h"
#include "tensor/device.h"
#include "tensor/program.h"

namespace brisk {

class BatchBuffer {
 public:
  BatchBuffer(Device& device, const RowCapacity& capacity);

  // Copies the batch to the device; the result points into this buffer and is valid until the next load().
  DeviceBatch::Set load(const MicroBatch& batch);

  static int64_t bytes(const RowCapacity& capacity);

 private:
  RowCapacity capacity_;
  Buffer buffer_;
};

}  // namespace brisk
