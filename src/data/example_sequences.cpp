#include "data/example_sequences.h"

#include <algorithm>

namespace brisk {

ExampleSequences::ExampleSequences(ExampleSet examples, int64_t max_length)
    : examples_(std::move(examples)), max_length_(max_length) {
  for (int64_t i = 0; i < examples_.count(); ++i) {
    const int64_t length = examples_.length(i, max_length);
    total_rows_ += length;
    squared_rows_ += static_cast<double>(length) * static_cast<double>(length);
  }
}

void ExampleSequences::append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const {
  examples_.append(index, max_length_, sequence, batch);
}

double MaskedSequences::picked_rows() const {
  if (empty()) return 0;
  return std::max(1.0, probability_ * static_cast<double>(total_rows()) / static_cast<double>(count()));
}

void MaskedSequences::append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const {
  examples_.append_masked(index, max_length_, sequence, masker_, epoch, batch);
}

}  // namespace brisk
