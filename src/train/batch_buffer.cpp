#include "train/batch_buffer.h"

#include <cstring>

#include "base/error.h"

namespace brisk {

namespace {

// tokens, targets, types, positions and sequences of the first set; source, targets, weights, positions and sequences
// of the second.
constexpr int64_t kColumns = 5;

int64_t bytes_of(const RowCapacity& capacity) {
  if (capacity.rows == 0) return 0;
  return (kColumns * capacity.rows + capacity.sequences + 1) * size_of(DType::i32);
}

// Copies column after column into a buffer, each of a fixed size; or, with staging, there, to be copied later.
class Placer {
 public:
  Placer(Device& device, void* start, char* staging)
      : device_(device), at_(static_cast<char*>(start)), staging_(staging) {}
  // Null where there is nothing.
  template <typename T>
  const T* place(const std::vector<T>& values, int64_t room) {
    static_assert(sizeof(T) == 4);
    BRISK_CHECK(static_cast<int64_t>(values.size()) <= room, "{} values in room for {}", values.size(), room);
    char* start = at_;
    char* staged = staging_;
    at_ += room * static_cast<int64_t>(sizeof(T));
    if (staging_ != nullptr) staging_ += room * static_cast<int64_t>(sizeof(T));
    if (values.empty()) return nullptr;
    if (staged != nullptr) {
      std::memcpy(staged, values.data(), values.size() * sizeof(T));
    } else {
      device_.copy_in(start, values.data(), static_cast<int64_t>(values.size() * sizeof(T)));
    }
    return reinterpret_cast<const T*>(start);
  }

 private:
  Device& device_;
  char* at_;
  char* staging_;
};

}  // namespace

BatchBuffer::BatchBuffer(Device& device, const RowCapacity& capacity, const RowCapacity& picked)
    : capacity_(capacity),
      picked_capacity_(picked),
      buffer_(device, bytes(capacity, picked)),
      staging_(nullptr, {&device}) {
  if (device.is_cuda()) staging_.reset(static_cast<char*>(device.allocate_staging(bytes(capacity, picked))));
}

int64_t BatchBuffer::bytes(const RowCapacity& capacity, const RowCapacity& picked) {
  return bytes_of(capacity) + bytes_of(picked);
}

DeviceBatch::Set BatchBuffer::load(const MicroBatch& batch) {
  BRISK_CHECK(batch.rows() <= capacity_.rows && batch.sequences() <= capacity_.sequences, "{} rows, {} sequences",
              batch.rows(), batch.sequences());
  Placer placer(buffer_.device(), buffer_.data(), staging_.get());
  const int64_t rows = capacity_.rows;
  DeviceBatch::Set set;
  set.tokens = placer.place(batch.tokens, rows);
  set.targets = placer.place(batch.targets, rows);
  set.types = placer.place(batch.types, rows);
  set.rows = {.rows = batch.rows(), .sequences = batch.sequences(), .longest = batch.longest};
  set.rows.position = placer.place(batch.position, rows);
  set.rows.sequence = placer.place(batch.sequence, rows);
  set.rows.starts = placer.place(batch.starts, capacity_.sequences + 1);
  if (staging_) buffer_.device().copy_in(buffer_.data(), staging_.get(), bytes_of(capacity_));
  return set;
}

void BatchBuffer::load(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets) {
  sets.resize(picked_capacity_.rows > 0 ? 2 : 1);
  sets[0] = load(batch);
  if (sets.size() == 1) return;
  const MicroBatch::Picked& picked = batch.picked;
  const auto sequences = static_cast<int64_t>(picked.starts.size()) - 1;
  BRISK_CHECK(picked.rows() <= picked_capacity_.rows && sequences == batch.sequences(),
              "{} picked rows of {} sequences in room for {}, and {} sequences", picked.rows(), sequences,
              picked_capacity_.rows, batch.sequences());
  const int64_t first_bytes = bytes_of(capacity_);
  char* second = static_cast<char*>(buffer_.data()) + first_bytes;
  Placer placer(buffer_.device(), second, staging_ ? staging_.get() + first_bytes : nullptr);
  const int64_t rows = picked_capacity_.rows;
  DeviceBatch::Set& set = sets[1];
  set = {};
  set.source = placer.place(picked.source, rows);
  set.targets = placer.place(picked.targets, rows);
  set.weights = placer.place(picked.weights, rows);
  set.rows = {.rows = picked.rows(), .sequences = sequences, .longest = picked.longest};
  set.rows.position = placer.place(picked.position, rows);
  set.rows.sequence = placer.place(picked.sequence, rows);
  set.rows.starts = placer.place(picked.starts, picked_capacity_.sequences + 1);
  if (staging_) buffer_.device().copy_in(second, staging_.get() + first_bytes, bytes_of(picked_capacity_));
}

}  // namespace brisk
