#include "data/batch/padding.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/error.h"

namespace brisk {

namespace {

// A column with some values a row: those of each sequence, and `filler` up to `length` rows.
template <typename T>
void pad_column(std::vector<T>& column, const std::vector<int32_t>& starts, int64_t length, T filler) {
  if (column.empty()) return;
  const size_t width = column.size() / static_cast<size_t>(starts.back());
  const auto sequences = starts.size() - 1;
  const auto at = [&](int32_t row) { return column.begin() + static_cast<std::ptrdiff_t>(width) * row; };
  std::vector<T> padded;
  padded.reserve(sequences * static_cast<size_t>(length) * width);
  for (size_t s = 0; s < sequences; ++s) {
    padded.insert(padded.end(), at(starts[s]), at(starts[s + 1]));
    padded.resize((s + 1) * static_cast<size_t>(length) * width, filler);
  }
  column = std::move(padded);
}

// The positions of the padding go on where those of its sequence end.
void number_padding(MicroBatch::Set& set) {
  for (size_t s = 0; s < set.real_ends.size(); ++s) {
    const auto begin = static_cast<size_t>(set.starts[s]), end = static_cast<size_t>(set.starts[s + 1]);
    const auto real_end = static_cast<size_t>(set.real_ends[s]);
    if (real_end == begin) continue;
    for (size_t row = real_end; row < end; ++row) {
      set.position[row] = set.position[row - 1] + 1;
      set.sequence[row] = set.sequence[begin];
    }
  }
}

// Sequence s of a derived set has rows of sequence s.
void follow(MicroBatch::Set& derived, const std::vector<int32_t>& starts, const std::vector<int32_t>& padded_starts) {
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    const int32_t shift = padded_starts[s] - starts[s];
    for (int32_t row = derived.starts[s]; row < derived.starts[s + 1]; ++row) {
      derived.source[static_cast<size_t>(row)] += shift;
    }
  }
}

void pad(MicroBatch& batch, int number, int64_t length) {
  MicroBatch::Set& set = batch.sets[static_cast<size_t>(number)];
  BRISK_CHECK(set.longest <= length, "a sequence of {} rows padded to {}", set.longest, length);
  const std::vector<int32_t> starts = set.starts;
  for (auto* column : {&set.position, &set.sequence, &set.tokens, &set.types})
    pad_column(*column, starts, length, int32_t{0});
  pad_column(set.targets, starts, length, int32_t{-1});
  for (auto* column : {&set.weights, &set.soft_targets}) pad_column(*column, starts, length, 0.0f);
  pad_column(set.inputs, starts, length, std::byte{0});
  pad_column(set.pixels, starts, length, uint8_t{0});
  set.real_ends.clear();
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    const auto begin = static_cast<int32_t>(static_cast<int64_t>(s) * length);
    set.real_ends.push_back(begin + starts[s + 1] - starts[s]);
    set.starts[s + 1] = static_cast<int32_t>(begin + length);
  }
  set.longest = length;
  number_padding(set);
  for (MicroBatch::Set& derived : batch.sets) {
    if (derived.derived_from == number && !derived.source.empty()) follow(derived, starts, set.starts);
  }
}

}  // namespace

void pad(MicroBatch& batch, const Padding& padding) {
  if (!padding.any()) return;
  for (size_t i = 0; i < batch.sets.size(); ++i) {
    const MicroBatch::Set& set = batch.sets[i];
    if (set.is_derived() || set.rows() == 0) continue;
    pad(batch, static_cast<int>(i), padding.to == Padding::To::longest ? set.longest : padding.lengths.at(i));
  }
}

int64_t padded_rows(std::span<const int64_t> lengths, size_t set, const Padding& padding) {
  if (lengths.empty()) return 0;
  switch (padding.to) {
    case Padding::To::longest: return std::ssize(lengths) * *std::max_element(lengths.begin(), lengths.end());
    case Padding::To::lengths: return std::ssize(lengths) * padding.lengths.at(set);
    case Padding::To::none: break;
  }
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

}  // namespace brisk
