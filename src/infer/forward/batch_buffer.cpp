#include "infer/forward/batch_buffer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/rounding.h"

namespace brisk {

namespace {

// Per row, at most: tokens, types, targets, weights, source, position and sequence. Per sequence, where it starts and where
// its padding does.
constexpr int64_t kMostColumns = 7;

int64_t column_bytes_of(const RowCapacity& capacity) {
  return round_up((kMostColumns * capacity.rows + 2 * capacity.sequences + 1) * size_of(DType::i32), 16);
}

// Of a matrix with rows of so many bytes; the next one begins aligned.
int64_t matrix_bytes(int64_t rows, int64_t row_bytes) { return round_up(rows * row_bytes, 16); }

// Copies column after column into a buffer, each in room for `capacity` values; or, with staging, there, to be copied
// later. Columns that are shorter than `rounded` go on with `filler`; those that are empty take no room.
class ColumnPlacer {
 public:
  ColumnPlacer(Device& device, void* start, char* staging)
      : device_(device), start_(static_cast<char*>(start)), staging_(staging) {}
  template <typename T>
  const T* place(const std::vector<T>& values, int64_t capacity, int64_t rounded, T filler = 0) {
    static_assert(sizeof(T) == 4);
    if (values.empty()) return nullptr;
    const auto count = static_cast<int64_t>(values.size());
    BRISK_CHECK(count <= rounded && rounded <= capacity, "{} values, rounded to {}, in room for {}", count, rounded,
                capacity);
    char* const place = start_ + bytes_;
    if (staging_ != nullptr) {
      T* to = reinterpret_cast<T*>(staging_ + bytes_);
      std::copy(values.begin(), values.end(), to);
      std::fill(to + count, to + rounded, filler);
    } else {
      device_.copy_in(place, values.data(), count * static_cast<int64_t>(sizeof(T)));
    }
    bytes_ += capacity * static_cast<int64_t>(sizeof(T));
    return reinterpret_cast<const T*>(place);
  }
  int64_t bytes() const { return bytes_; }  // that were used

 private:
  Device& device_;
  char* start_;
  char* staging_;
  int64_t bytes_ = 0;
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

BatchBuffer::BatchBuffer(Device& device, std::vector<RowCapacity> capacities)
    : capacities_(std::move(capacities)), matrices_(capacities_.size()), buffer_(device, column_bytes(capacities_)) {}

BatchBuffer::BatchBuffer(Device& device, const Tape& tape)
    : capacities_(tape.row_sets()), input_size_(size_of(tape.activation_type())), buffer_(device, bytes(tape)) {
  for (size_t set = 0; set < capacities_.size(); ++set) matrices_.push_back(tape.matrices(static_cast<int>(set)));
}

int64_t BatchBuffer::column_bytes(std::span<const RowCapacity> capacities) {
  int64_t bytes = 0;
  for (const RowCapacity& capacity : capacities) bytes += column_bytes_of(capacity);
  return bytes;
}

int64_t BatchBuffer::bytes(const Tape& tape) {
  int64_t bytes = column_bytes(tape.row_sets());
  for (size_t set = 0; set < tape.row_sets().size(); ++set) {
    const BatchMatrices& matrices = tape.matrices(static_cast<int>(set));
    const int64_t rows = tape.row_sets()[set].rows;
    bytes += matrix_bytes(rows, matrices.inputs * size_of(tape.activation_type())) +
             matrix_bytes(rows, matrices.soft_targets * size_of(DType::f32)) + matrix_bytes(rows, matrices.pixels);
  }
  return bytes;
}

char* BatchBuffer::staging(size_t slot) {
  Device& device = buffer_.device();
  if (!device.is_cuda()) return nullptr;
  while (staging_.size() <= slot) {
    staging_.emplace_back(static_cast<char*>(device.allocate_staging(column_bytes(capacities_))), Release{&device});
  }
  return staging_[slot].get();
}

void BatchBuffer::load(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets) {
  load_columns(batch, staging(0), false, sets);
  load_matrices(batch, sets);
}

void BatchBuffer::queue(const MicroBatch& batch, size_t slot, std::vector<DeviceBatch::Set>& sets) {
  if (!inlet_) inlet_ = buffer_.device().inlet(column_bytes(capacities_));
  load_columns(batch, staging(slot), true, sets);
  load_matrices(batch, sets);
}

void BatchBuffer::load_columns(const MicroBatch& batch, char* staging, bool rounds,
                               std::vector<DeviceBatch::Set>& sets) {
  BRISK_CHECK(batch.sets.size() >= capacities_.size(), "{} row sets of {}", batch.sets.size(), capacities_.size());
  sets.assign(capacities_.size(), {});
  const auto fewest = std::min_element(capacities_.begin(), capacities_.end(),
                                       [](const auto& a, const auto& b) { return a.sequences < b.sequences; });
  const int64_t sequences = rounds ? recurring_size(batch.sequences(), fewest->sequences) : batch.sequences();
  ColumnPlacer placer(buffer_.device(), buffer_.data(), staging);
  for (size_t i = 0; i < sets.size(); ++i) {
    const MicroBatch::Set& from = batch.sets[i];
    const RowCapacity& capacity = capacities_[i];
    BRISK_CHECK(from.rows() <= capacity.rows && from.sequences() == batch.sequences() && sequences <= fewest->sequences,
                "row set {}: {} rows of {} sequences in room for {} of {}; set 0 has {} sequences", i, from.rows(),
                from.sequences(), capacity.rows, capacity.sequences, batch.sequences());
    const int64_t rows = rounds ? recurring_size(from.rows(), capacity.rows) : from.rows();
    const int64_t longest =
        rounds ? std::max(from.longest, std::min(capacity.longest, round_up(from.longest, kLengthStep))) : from.longest;
    DeviceBatch::Set& set = sets[i];
    set.tokens = placer.place(from.tokens, capacity.rows, rows);
    set.types = placer.place(from.types, capacity.rows, rows);
    set.targets = placer.place(from.targets, capacity.rows, rows, int32_t{-1});
    set.weights = placer.place(from.weights, capacity.rows, rows);
    set.source = placer.place(from.source, capacity.rows, rows);
    set.rows = {.rows = rows, .sequences = sequences, .longest = longest};
    set.rows.even = !from.is_derived() && from.rows() == rows && from.sequences() == sequences &&
                    from.longest == longest && rows == sequences * longest;
    set.rows.position = placer.place(from.position, capacity.rows, rows);
    set.rows.sequence = placer.place(from.sequence, capacity.rows, rows);
    set.rows.starts = placer.place(from.starts, capacity.sequences + 1, sequences + 1, from.starts.back());
    set.real_ends = placer.place(from.real_ends, capacity.sequences, sequences, from.starts.back());
  }
  if (staging != nullptr && rounds && inlet_) {
    inlet_->send(buffer_.data(), staging, placer.bytes());
  } else if (staging != nullptr) {
    buffer_.device().copy_in(buffer_.data(), staging, placer.bytes());
  }
}

// After the columns of all sets, so that these lie where they always do. Rows beyond the batch's keep what was there:
// numbers of an earlier batch, or 0.
void BatchBuffer::load_matrices(const MicroBatch& batch, std::vector<DeviceBatch::Set>& sets) {
  char* at = static_cast<char*>(buffer_.data()) + column_bytes(capacities_);
  for (size_t i = 0; i < sets.size(); ++i) {
    const MicroBatch::Set& from = batch.sets[i];
    const auto place = [&](const auto& values, int64_t row_bytes) -> const void* {
      if (row_bytes == 0) return nullptr;
      const auto bytes = static_cast<int64_t>(std::span(values).size_bytes());
      BRISK_CHECK(bytes == from.rows() * row_bytes, "{} bytes for {} rows of {}", bytes, from.rows(), row_bytes);
      buffer_.device().copy_in(at, values.data(), bytes);
      return std::exchange(at, at + matrix_bytes(capacities_[i].rows, row_bytes));
    };
    sets[i].inputs = place(from.inputs, matrices_[i].inputs * input_size_);
    sets[i].soft_targets =
        static_cast<const float*>(place(from.soft_targets, matrices_[i].soft_targets * size_of(DType::f32)));
    sets[i].pixels = static_cast<const uint8_t*>(place(from.pixels, matrices_[i].pixels));
  }
}

}  // namespace brisk
