#include "infer/forward/decoding_cache.h"

#include <algorithm>

#include "base/error.h"
#include "ops/backend.h"

namespace brisk {

int64_t DecodingCache::bytes(const ConditionalModel& model, DType type, int64_t slots, int64_t capacity) {
  const auto [layers, width] = model.cache_shape();
  return 2 * layers * slots * capacity * width * size_of(type);
}

DecodingCache::DecodingCache(const ParameterStore& store, const ConditionalModel& model, int64_t slots,
                             int64_t capacity, int64_t memory_rows)
    : device_(store.device()),
      slots_(slots),
      memory_(device_, bytes(model, store.compute_type(), slots, capacity)),
      ranges_(device_, 4 * slots * size_of(DType::i32)),
      moves_(device_, slots * static_cast<int64_t>(sizeof(RowMove))) {
  if (memory_rows > 0) {
    kept_ = Buffer(device_, memory_rows * model.memory_width() * size_of(store.compute_type()));
    kept_rows_ = matrix(kept_.data(), store.compute_type(), memory_rows, model.memory_width());
  }
  const DType type = store.compute_type();
  const auto [layers, width] = model.cache_shape();
  const int64_t rows = slots * capacity, matrix_bytes = rows * width * size_of(type);
  char* at = static_cast<char*>(memory_.data());
  for (int64_t layer = 0; layer < layers; ++layer) {
    entries_.keys.push_back(matrix(at, type, rows, width));
    entries_.values.push_back(matrix(at + matrix_bytes, type, rows, width));
    at += 2 * matrix_bytes;
  }
  entries_.capacity = capacity;
  const auto* ranges = static_cast<const int32_t*>(ranges_.data());
  entries_.begin = ranges;
  entries_.end = ranges + slots;
  entries_.memory_begin = ranges + 2 * slots;
  entries_.memory_end = ranges + 3 * slots;
}

void DecodingCache::keep_memory(const Tensor& memory, int64_t first_row) {
  BRISK_CHECK(first_row + memory.rows <= kept_rows_.rows, "{} rows after {} in room for {}", memory.rows, first_row,
              kept_rows_.rows);
  entries_.memory = kept_rows_;
  const Tensor place = kept_rows_.row_range(first_row, memory.rows);
  const DeviceAccess access(device_);
  if (device_.is_cuda()) {
    BRISK_RUN_ON_GPU(copy_rows, memory, place, false);
  } else {
    cpu::copy_rows(memory, place, false);
  }
}

void DecodingCache::begin(std::span<const Sequence> sequences) {
  BRISK_CHECK(std::ssize(sequences) <= slots_, "{} sequences in {} slots", sequences.size(), slots_);
  staged_.assign(static_cast<size_t>(4 * slots_), 0);
  entries_.longest = entries_.longest_memory = 0;
  for (size_t s = 0; s < sequences.size(); ++s) {
    const Sequence& sequence = sequences[s];
    BRISK_CHECK(sequence.slot >= 0 && sequence.slot < slots_ && sequence.length <= entries_.capacity,
                "{} rows in slot {} of {}, which hold {}", sequence.length, sequence.slot, slots_, entries_.capacity);
    const int64_t first = sequence.slot * entries_.capacity;
    const int64_t numbers[4] = {first, first + sequence.length, sequence.memory_begin, sequence.memory_end};
    for (size_t i = 0; i < 4; ++i) staged_[i * static_cast<size_t>(slots_) + s] = static_cast<int32_t>(numbers[i]);
    entries_.longest = std::max(entries_.longest, sequence.length);
    entries_.longest_memory = std::max(entries_.longest_memory, sequence.memory_end - sequence.memory_begin);
  }
  device_.copy_in(ranges_.data(), staged_.data(), std::ssize(staged_) * size_of(DType::i32));
}

void DecodingCache::copy(std::span<const Copy> copies) {
  if (copies.empty()) return;
  BRISK_CHECK(std::ssize(copies) <= slots_, "{} copies of {} slots", copies.size(), slots_);
  staged_moves_.clear();
  int64_t longest = 0;
  for (const Copy& copy : copies) {
    const bool fits = std::max(copy.from, copy.to) < slots_ && copy.length <= entries_.capacity;
    BRISK_CHECK(fits && copy.from != copy.to, "{} rows of slot {} to slot {}", copy.length, copy.from, copy.to);
    staged_moves_.push_back({static_cast<int32_t>(copy.from * entries_.capacity),
                             static_cast<int32_t>(copy.to * entries_.capacity), static_cast<int32_t>(copy.length)});
    longest = std::max(longest, copy.length);
  }
  device_.copy_in(moves_.data(), staged_moves_.data(), std::ssize(copies) * static_cast<int64_t>(sizeof(RowMove)));
  const auto* moves = static_cast<const RowMove*>(moves_.data());
  const DeviceAccess access(device_);
  for (const std::vector<Tensor>* tensors : {&entries_.keys, &entries_.values}) {
    for (const Tensor& tensor : *tensors) {
      if (device_.is_cuda()) {
        BRISK_RUN_ON_GPU(move_rows, tensor, moves, std::ssize(copies), longest);
      } else {
        cpu::move_rows(tensor, moves, std::ssize(copies), longest);
      }
    }
  }
}

}  // namespace brisk
