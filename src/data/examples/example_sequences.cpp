#include "data/examples/example_sequences.h"

#include <algorithm>
#include <cmath>

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
  if (teacher_logits_) append_shares(index, batch.picked.soft_targets);
  if (inputs_) {
    const std::span<const std::byte> rows = inputs_->of(examples_.row_of(index));
    std::vector<std::byte>& inputs = inputs_of_picked_ ? batch.picked.inputs : batch.inputs;
    inputs.insert(inputs.end(), rows.begin(), rows.end());
  }
}

void ExampleSequences::read_inputs(std::shared_ptr<const ExampleActivations> inputs, bool of_picked_rows) {
  inputs_ = std::move(inputs);
  inputs_of_picked_ = of_picked_rows;
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

double MaskedSequences::picked_rows() const {
  if (empty()) return 0;
  return std::max(1.0, probability_ * static_cast<double>(total_rows()) / static_cast<double>(count()));
}

void MaskedSequences::append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const {
  examples_.append_masked(index, max_length_, sequence, masker_, epoch, batch);
}

}  // namespace brisk
