#include "data/examples/example_sequences.h"

#include <algorithm>
#include <cmath>

namespace brisk {

ExampleSequences::ExampleSequences(ExampleSet examples, int64_t max_length)
    : examples_(std::move(examples)), max_length_(max_length) {
  for (int64_t i = 0; i < examples_.count(); ++i) totals_.add(examples_.length(i, max_length));
}

LengthTotals ExampleSequences::totals(int set) const {
  if (set == 0 || empty()) return totals_;
  return {.longest = 1, .rows = count(), .squares = static_cast<double>(count())};  // the first row of each
}

void ExampleSequences::append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const {
  examples_.append(index, max_length_, sequence, batch);
  if (teacher_logits_) append_shares(index, batch.sets[kPickedSet].soft_targets);
  if (inputs_) {
    const std::span<const std::byte> rows = inputs_->of(examples_.row_of(index));
    std::vector<std::byte>& inputs = batch.sets[input_set_].inputs;
    inputs.insert(inputs.end(), rows.begin(), rows.end());
  }
}

void ExampleSequences::read_inputs(std::shared_ptr<const ExampleActivations> inputs, bool of_picked_rows) {
  inputs_ = std::move(inputs);
  input_set_ = of_picked_rows ? kPickedSet : 0;
}

void ExampleSequences::learn_from(std::shared_ptr<const ExampleActivations> logits, double temperature) {
  teacher_logits_ = std::move(logits);
  temperature_ = temperature;
}

void ExampleSequences::append_shares(int64_t index, std::vector<float>& shares) const {
  const std::span<const std::byte> bytes = teacher_logits_->of(examples_.row_of(index));
  const std::span logits(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
  const float largest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) total += std::exp((logit - largest) / temperature_);
  for (const float logit : logits)
    shares.push_back(static_cast<float>(std::exp((logit - largest) / temperature_) / total));
}

LengthTotals MaskedSequences::totals(int set) const {
  const LengthTotals texts = ExampleSequences::totals(0);
  if (set == 0 || empty()) return texts;
  const int64_t rows = std::max<int64_t>(count(), std::llround(probability_ * static_cast<double>(texts.rows)));
  return {texts.longest, rows, static_cast<double>(rows) * static_cast<double>(rows) / static_cast<double>(count())};
}

void MaskedSequences::append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const {
  examples_.append_masked(index, max_length_, sequence, masker_, epoch, batch);
}

}  // namespace brisk
