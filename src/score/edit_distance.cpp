#include "score/edit_distance.h"

#include <algorithm>

namespace brisk {

namespace {

constexpr size_t kBlock = 64;

// Takes off what both begin or end with, which costs no edit.
void strip_common_ends(std::span<const uint32_t>& a, std::span<const uint32_t>& b) {
  const auto [a_front, b_front] = std::ranges::mismatch(a, b);
  a = a.subspan(a_front - a.begin());
  b = b.subspan(b_front - b.begin());
  size_t same = 0;
  while (same < std::min(a.size(), b.size()) && a[a.size() - 1 - same] == b[b.size() - 1 - same]) ++same;
  a = a.first(a.size() - same);
  b = b.first(b.size() - same);
}

}  // namespace

void EditDistance::number_symbols(std::span<const uint32_t> pattern, std::span<const uint32_t> text) {
  numbers_.clear();
  pattern_.clear();
  for (const uint32_t symbol : pattern) {
    pattern_.push_back(numbers_.try_emplace(symbol, static_cast<uint32_t>(numbers_.size())).first->second);
  }
  const auto none = static_cast<uint32_t>(numbers_.size());
  text_.clear();
  for (const uint32_t symbol : text) {
    const auto found = numbers_.find(symbol);
    text_.push_back(found == numbers_.end() ? none : found->second);
  }
  equal_.assign(numbers_.size() + 1, 0);
}

// A block of rows from the first column to the last. Bits of plus and minus: where a cell is one more or one less than the one
// above it.
void EditDistance::sweep(std::span<const uint32_t> rows) {
  for (size_t i = 0; i < rows.size(); ++i) equal_[rows[i]] |= uint64_t{1} << i;
  const auto last = static_cast<int>(rows.size()) - 1;
  uint64_t plus = ~uint64_t{0}, minus = 0;
  for (size_t j = 0; j < text_.size(); ++j) {
    const uint64_t up_in = steps_[j] > 0 ? 1 : 0, down_in = steps_[j] < 0 ? 1 : 0;
    uint64_t equal = equal_[text_[j]];
    const uint64_t vertical = equal | minus;
    equal |= down_in;
    const uint64_t horizontal = (((equal & plus) + plus) ^ plus) | equal;
    uint64_t up = minus | ~(horizontal | plus), down = plus & horizontal;
    steps_[j] = static_cast<int8_t>(static_cast<int>(up >> last & 1) - static_cast<int>(down >> last & 1));
    up = up << 1 | up_in;
    down = down << 1 | down_in;
    plus = down | ~(vertical | up);
    minus = up & vertical;
  }
  for (const uint32_t symbol : rows) equal_[symbol] = 0;
}

int64_t EditDistance::between(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  strip_common_ends(a, b);
  if (a.size() > b.size()) std::swap(a, b);
  if (a.empty()) return static_cast<int64_t>(b.size());
  number_symbols(a, b);
  steps_.assign(b.size(), 1);  // row 0 counts the columns
  for (size_t begin = 0; begin < a.size(); begin += kBlock) {
    sweep(std::span<const uint32_t>(pattern_).subspan(begin, std::min(kBlock, a.size() - begin)));
  }
  auto distance = static_cast<int64_t>(a.size());  // column 0 counts the rows
  for (const int8_t step : steps_) distance += step;
  return distance;
}

}  // namespace brisk
