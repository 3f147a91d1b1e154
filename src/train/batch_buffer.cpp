#include "train/batch_buffer.h"

#include "base/error.h"

namespace brisk {

BatchBuffer::BatchBuffer(Device& device, const RowCapacity& capacity)
    : capacity_(capacity), buffer_(device, bytes(capacity)) {}

int64_t BatchBuffer::bytes(const RowCapacity& capacity) {
  return (4 * capacity.rows + capacity.sequences + 1) * size_of(DType::i32);
}

DeviceBatch::Set BatchBuffer::load(const MicroBatch& batch) {
  BRISK_CHECK(batch.rows() <= capacity_.rows && batch.sequences() <= capacity_.sequences, "{} rows, {} sequences",
              batch.rows(), batch.sequences());
  int32_t* at = static_cast<int32_t*>(buffer_.data());
  const auto place = [&](const std::vector<int32_t>& values, int64_t room) -> const int32_t* {
    int32_t* start = at;
    if (!values.empty())
      buffer_.device().copy_in(start, values.data(), static_cast<int64_t>(values.size()) * size_of(DType::i32));
    at += room;
    return start;
  };
  DeviceBatch::Set set;
  set.tokens = place(batch.tokens, capacity_.rows);
  set.targets = place(batch.targets, capacity_.rows);
  set.rows = {.rows = batch.rows(), .sequences = batch.sequences(), .longest = batch.longest};
  set.rows.position = place(batch.position, capacity_.rows);
  set.rows.sequence = place(batch.sequence, capacity_.rows);
  set.rows.starts = place(batch.starts, capacity_.sequences + 1);
  return set;
}

}  // namespace brisk
