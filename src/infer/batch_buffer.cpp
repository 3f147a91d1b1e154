#include "infer/batch_buffer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/rounding.h"

namespace brisk {

namespace {

// tokens, targets, types, positions and sequences of the first set; source, targets, weights, positions and sequences
// of the second.
constexpr int64_t kColumns = 5;

int64_t bytes_of(const RowCapacity& capacity) {
  if (capacity.rows == 0) return 0;
  return (kColumns * capacity.rows + capacity.sequences + 1) * size_of(DType::i32);
}

// Copies column after column into a buffer, each of a fixed size; or, with staging, there, to be copied later. Columns
// that are shorter than `rounded` go on with `filler`.
class Placer {
 public:
  Placer(Device& device, void* start, char* staging)
      : device_(device), at_(static_cast<char*>(start)), staging_(staging) {}
  // Null where there is nothing.
  template <typename T>
  const T* place(const std::vector<T>& values, int64_t room, int64_t rounded = 0, T filler = 0) {
    static_assert(sizeof(T) == 4);
    const auto count = static_cast<int64_t>(values.size());
    BRISK_CHECK(count <= room && rounded <= room, "{} values, rounded to {}, in room for {}", count, rounded, room);
    char* start = at_;
    char* staged = staging_;
    at_ += room * static_cast<int64_t>(sizeof(T));
    if (staging_ != nullptr) staging_ += room * static_cast<int64_t>(sizeof(T));
    if (values.empty()) return nullptr;
    if (staged != nullptr) {
      T* to = reinterpret_cast<T*>(staged);
      std::copy(values.begin(), values.end(), to);
      if (rounded > count) std::fill(to + count, to + rounded, filler);
    } else {
      device_.copy_in(start, values.data(), count * static_cast<int64_t>(sizeof(T)));
    }
    return reinterpret_cast<const T*>(start);
  }

 private:
  Device& device_;
  char* at_;
  char* staging_;
};

// At most a sixteenth more, of many rows half of that; one of 16 or 32 sizes between a power of two and the next.
int64_t recurring_size(int64_t count, int64_t most) {
  constexpr int64_t kMany = 8192;
  const int64_t sizes = count >= kMany ? 32 : 16;
  const int64_t step = std::max<int64_t>(8, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count))) / sizes);
  return std::max(count, std::min(most, round_up(count, step)));
}

constexpr int64_t kLengthStep = 64;

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

char* BatchBuffer::staging(size_t slot) {
  Device& device = buffer_.device();
  if (!device.is_cuda()) return nullptr;
  while (staging_.size() <= slot) {
    staging_.emplace_back(static_cast<char*>(device.allocate_staging(bytes(capacity_, picked_capacity_))),
                          Release{&device});
  }
  return staging_[slot].get();
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

// After the columns of both sets, so that these lie where they always do. Rows beyond the batch's keep what was there:
// numbers of an earlier batch, or 0.
void BatchBuffer::load_matrices(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets) {
  char* at = static_cast<char*>(buffer_.data()) + bytes(capacity_, picked_capacity_);
  const auto place = [&](const void* values, int64_t found, int64_t rows, int64_t capacity, int64_t row_bytes) {
    BRISK_CHECK(found == rows * row_bytes, "{} bytes for {} rows of {}", found, rows, row_bytes);
    buffer_.device().copy_in(at, values, found);
    return std::exchange(at, at + capacity * row_bytes);
  };
  for (size_t set = 0; set < matrices_.size(); ++set) {
    const BatchMatrices& matrices = matrices_[set];
    const int64_t rows = set == 0 ? batch.rows() : batch.picked.rows();
    const int64_t capacity = (set == 0 ? capacity_ : picked_capacity_).rows;
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
  BRISK_CHECK(picked_capacity_.rows == 0, "a batch of two row sets");
  std::vector<DeviceBatch::Set> sets;
  load(batch, staging(0), false, sets);
  return sets.front();
}

void BatchBuffer::load(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets) {
  load(batch, staging(0), false, sets);
}

void BatchBuffer::queue(const MicroBatch& batch, size_t slot, std::vector<DeviceBatch::Set>& sets) {
  if (!inlet_) inlet_ = buffer_.device().inlet(bytes(capacity_, picked_capacity_));
  load(batch, staging(slot), true, sets);
}

void BatchBuffer::load(const MicroBatch& batch, char* staging, bool rounds, std::vector<DeviceBatch::Set>& sets) {
  BRISK_CHECK(batch.rows() <= capacity_.rows && batch.sequences() <= capacity_.sequences, "{} rows, {} sequences",
              batch.rows(), batch.sequences());
  const bool picks = picked_capacity_.rows > 0;
  sets.assign(picks ? 2 : 1, {});
  const int64_t rows = rounds ? recurring_size(batch.rows(), capacity_.rows) : batch.rows();
  const int64_t most_sequences =
      picks ? std::min(capacity_.sequences, picked_capacity_.sequences) : capacity_.sequences;
  const int64_t sequences = rounds ? recurring_size(batch.sequences(), most_sequences) : batch.sequences();
  const auto longest_of = [&](int64_t longest, const RowCapacity& capacity) {
    return rounds ? std::max(longest, std::min(capacity.longest, round_up(longest, kLengthStep))) : longest;
  };
  {
    Placer placer(buffer_.device(), buffer_.data(), staging);
    DeviceBatch::Set& set = sets[0];
    const int64_t room = capacity_.rows;
    set.tokens = placer.place(batch.tokens, room, rows);
    set.targets = placer.place(batch.targets, room, rows, int32_t{-1});
    set.types = placer.place(batch.types, room, rows);
    set.rows = {.rows = rows, .sequences = sequences, .longest = longest_of(batch.longest, capacity_)};
    set.rows.even = batch.rows() == rows && batch.sequences() == sequences && batch.longest == set.rows.longest &&
                    rows == sequences * batch.longest;
    set.rows.position = placer.place(batch.position, room, rows);
    set.rows.sequence = placer.place(batch.sequence, room, rows);
    set.rows.starts = placer.place(batch.starts, capacity_.sequences + 1, sequences + 1, batch.starts.back());
  }
  if (picks) {
    const MicroBatch::Picked& picked = batch.picked;
    const auto picked_sequences = static_cast<int64_t>(picked.starts.size()) - 1;
    BRISK_CHECK(picked.rows() <= picked_capacity_.rows && picked_sequences == batch.sequences(),
                "{} picked rows of {} sequences in room for {}, and {} sequences", picked.rows(), picked_sequences,
                picked_capacity_.rows, batch.sequences());
    const int64_t first_bytes = bytes_of(capacity_);
    Placer placer(buffer_.device(), static_cast<char*>(buffer_.data()) + first_bytes,
                  staging != nullptr ? staging + first_bytes : nullptr);
    const int64_t room = picked_capacity_.rows;
    const int64_t picked_rows = rounds ? recurring_size(picked.rows(), room) : picked.rows();
    DeviceBatch::Set& set = sets[1];
    set.source = placer.place(picked.source, room, picked_rows);
    set.targets = placer.place(picked.targets, room, picked_rows, int32_t{-1});
    set.weights = placer.place(picked.weights, room, picked_rows);
    set.rows = {.rows = picked_rows, .sequences = sequences, .longest = longest_of(picked.longest, picked_capacity_)};
    set.rows.position = placer.place(picked.position, room, picked_rows);
    set.rows.sequence = placer.place(picked.sequence, room, picked_rows);
    set.rows.starts = placer.place(picked.starts, picked_capacity_.sequences + 1, sequences + 1, picked.starts.back());
  }
  if (staging != nullptr && rounds && inlet_) {
    inlet_->send(buffer_.data(), staging, bytes(capacity_, picked_capacity_));
  } else if (staging != nullptr) {
    buffer_.device().copy_in(buffer_.data(), staging, bytes(capacity_, picked_capacity_));
  }
  load_matrices(batch, sets);
}

}  // namespace brisk
