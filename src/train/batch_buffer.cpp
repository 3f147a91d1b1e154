#include "train/batch_buffer.h"

#include <utility>

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

// Copies column after column into a buffer, each of a fixed size.
class Placer {
 public:
  Placer(Device& device, void* start) : device_(device), at_(static_cast<char*>(start)) {}
  // Null where there is nothing.
  template <typename T>
  const T* place(const std::vector<T>& values, int64_t room) {
    static_assert(sizeof(T) == 4);
    BRISK_CHECK(static_cast<int64_t>(values.size()) <= room, "{} values in room for {}", values.size(), room);
    char* start = at_;
    at_ += room * static_cast<int64_t>(sizeof(T));
    if (values.empty()) return nullptr;
    device_.copy_in(start, values.data(), static_cast<int64_t>(values.size() * sizeof(T)));
    return reinterpret_cast<const T*>(start);
  }

 private:
  Device& device_;
  char* at_;
};

}  // namespace

BatchBuffer::BatchBuffer(Device& device, const RowCapacity& capacity, const RowCapacity& picked)
    : capacity_(capacity), picked_capacity_(picked), buffer_(device, bytes(capacity, picked)) {}

BatchBuffer::BatchBuffer(Device& device, const Tape& tape)
    : capacity_(tape.rows(0)),
      picked_capacity_(tape.row_sets().size() > 1 ? tape.rows(1) : RowCapacity{}),
      input_size_(size_of(tape.activation_type())),
      buffer_(device, bytes(tape)) {
  for (size_t set = 0; set < tape.row_sets().size(); ++set) matrices_.push_back(tape.matrices(static_cast<int>(set)));
}

int64_t BatchBuffer::bytes(const RowCapacity& capacity, const RowCapacity& picked) {
  return bytes_of(capacity) + bytes_of(picked);
}

int64_t BatchBuffer::bytes(const Tape& tape) {
  int64_t bytes = 0;
  for (size_t set = 0; set < tape.row_sets().size(); ++set) {
    const RowCapacity& capacity = tape.row_sets()[set];
    const BatchMatrices& matrices = tape.matrices(static_cast<int>(set));
    bytes += bytes_of(capacity) + capacity.rows * (matrices.inputs * size_of(tape.activation_type()) +
                                                   matrices.soft_targets * size_of(DType::f32));
  }
  return bytes;
}

// After the columns of both sets, so that these lie where they always do.
void BatchBuffer::load_matrices(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets) {
  char* at = static_cast<char*>(buffer_.data()) + bytes(capacity_, picked_capacity_);
  const auto place = [&](const void* values, int64_t found, int64_t rows, int64_t capacity, int64_t row_bytes) {
    BRISK_CHECK(found == rows * row_bytes, "{} bytes for {} rows of {}", found, rows, row_bytes);
    buffer_.device().copy_in(at, values, found);
    return std::exchange(at, at + capacity * row_bytes);
  };
  for (size_t set = 0; set < matrices_.size(); ++set) {
    const BatchMatrices& matrices = matrices_[set];
    const int64_t rows = sets[set].rows.rows, capacity = (set == 0 ? capacity_ : picked_capacity_).rows;
    const std::vector<std::byte>& inputs = set == 0 ? batch.inputs : batch.picked.inputs;
    if (matrices.inputs > 0) {
      sets[set].inputs = place(inputs.data(), std::ssize(inputs), rows, capacity, matrices.inputs * input_size_);
    }
    if (matrices.soft_targets > 0) {
      const std::vector<float>& soft = batch.picked.soft_targets;
      const auto row_bytes = matrices.soft_targets * static_cast<int64_t>(sizeof(float));
      sets[set].soft_targets = reinterpret_cast<const float*>(
          place(soft.data(), std::ssize(soft) * static_cast<int64_t>(sizeof(float)), rows, capacity, row_bytes));
    }
  }
}

DeviceBatch::Set BatchBuffer::load(const MicroBatch& batch) {
  BRISK_CHECK(batch.rows() <= capacity_.rows && batch.sequences() <= capacity_.sequences, "{} rows, {} sequences",
              batch.rows(), batch.sequences());
  Placer placer(buffer_.device(), buffer_.data());
  const int64_t rows = capacity_.rows;
  DeviceBatch::Set set;
  set.tokens = placer.place(batch.tokens, rows);
  set.targets = placer.place(batch.targets, rows);
  set.types = placer.place(batch.types, rows);
  set.rows = {.rows = batch.rows(), .sequences = batch.sequences(), .longest = batch.longest};
  set.rows.position = placer.place(batch.position, rows);
  set.rows.sequence = placer.place(batch.sequence, rows);
  set.rows.starts = placer.place(batch.starts, capacity_.sequences + 1);
  return set;
}

void BatchBuffer::load(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets) {
  sets.resize(picked_capacity_.rows > 0 ? 2 : 1);
  sets[0] = load(batch);
  if (sets.size() == 1) {
    load_matrices(batch, sets);
    return;
  }
  const MicroBatch::Picked& picked = batch.picked;
  const auto sequences = static_cast<int64_t>(picked.starts.size()) - 1;
  BRISK_CHECK(picked.rows() <= picked_capacity_.rows && sequences == batch.sequences(),
              "{} picked rows of {} sequences in room for {}, and {} sequences", picked.rows(), sequences,
              picked_capacity_.rows, batch.sequences());
  Placer placer(buffer_.device(), static_cast<char*>(buffer_.data()) + bytes_of(capacity_));
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
  load_matrices(batch, sets);
}

}  // namespace brisk
