#include "data/corpus/document_lengths.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace brisk {

namespace {

constexpr int64_t kExact = 65536;
constexpr int kStepsOfDoubling = 32;

// The place of a length among the counts, and the largest length of a place.
size_t place_of(int64_t length) {
  if (length <= kExact) return static_cast<size_t>(length);
  const int doubling = std::bit_width(static_cast<uint64_t>(length - 1)) - 17;  // 65,537 to 131,072 is 0
  const int64_t first = kExact << doubling;
  const int64_t step = (length - first - 1) * kStepsOfDoubling / first;
  return static_cast<size_t>(kExact + 1 + doubling * kStepsOfDoubling + step);
}

int64_t largest_of(size_t place) {
  if (place <= static_cast<size_t>(kExact)) return static_cast<int64_t>(place);
  const auto above = static_cast<int64_t>(place) - kExact - 1;
  const int64_t first = kExact << (above / kStepsOfDoubling);
  return first + first / kStepsOfDoubling * (above % kStepsOfDoubling + 1);
}

}  // namespace

void DocumentLengths::add(int64_t length) {
  BRISK_CHECK(length >= 1, "a document of {} rows", length);
  const size_t place = place_of(length);
  if (place >= counts_.size()) counts_.resize(place + 1);
  ++counts_[place];
  const auto k = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(length - 1)));
  if (k >= bars_.size()) bars_.resize(k + 1);
  ++bars_[k].documents;
  bars_[k].tokens += length;
  shortest_ = documents_ == 0 ? length : std::min(shortest_, length);
  longest_ = std::max(longest_, length);
  ++documents_;
  tokens_ += length;
}

int64_t DocumentLengths::at_share(double share) const {
  const auto rank = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share * static_cast<double>(documents_))));
  int64_t seen = 0;
  for (size_t place = 0; place < counts_.size(); ++place) {
    seen += counts_[place];
    if (seen >= rank) return std::min(largest_of(place), longest_);
  }
  return longest_;
}

std::vector<DocumentLengths::Bar> DocumentLengths::histogram() const {
  std::vector<Bar> bars;
  for (size_t k = 0; k < bars_.size(); ++k) {
    if (bars.empty() && bars_[k].documents == 0) continue;
    Bar bar = bars_[k];
    bar.from = k == 0 ? 1 : (int64_t{1} << (k - 1)) + 1;
    bar.to = int64_t{1} << k;
    bars.push_back(bar);
  }
  return bars;
}

}  // namespace brisk
