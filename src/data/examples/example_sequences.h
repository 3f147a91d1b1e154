// The examples of a table as sequences for the loader: texts with one label each, or texts with some tokens masked.
//
//   auto labelled = std::make_shared<const ExampleSequences>(split.train, /*max_length=*/128);
//   auto masked = std::make_shared<const MaskedSequences>(split.train, 128, Masker(*tokenizer, {.seed = 1}));
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "data/batch/sequences.h"
#include "data/examples/example_activations.h"
#include "data/examples/examples.h"

namespace brisk {

class ExampleSequences : public Sequences {
 public:
  ExampleSequences(ExampleSet examples, int64_t max_length);

  int64_t count() const override { return examples_.count(); }
  int64_t rows(int64_t index, int /*set*/ = 0) const override { return examples_.length(index, max_length_); }
  LengthTotals totals(int set = 0) const override;
  void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const override;

  const ExampleSet& examples() const { return examples_; }

  // The picked rows also carry soft targets: a teacher's class probabilities, from its logits at this temperature (one
  // row for each row of the data).
  void learn_from(std::shared_ptr<const ExampleActivations> logits, double temperature);
  // The micro-batch also carries the activations that a model reads instead of tokens: of every row, or of the picked
  // ones.
  void read_inputs(std::shared_ptr<const ExampleActivations> inputs, bool of_picked_rows);

 protected:
  ExampleSet examples_;
  int64_t max_length_;

 private:
  void append_shares(int64_t index, std::vector<float>& shares) const;

  LengthTotals totals_;
  std::shared_ptr<const ExampleActivations> teacher_logits_;
  double temperature_ = 1;
  std::shared_ptr<const ExampleActivations> inputs_;
  size_t input_set_ = 0;  // whose rows these are
};

class MaskedSequences final : public ExampleSequences {
 public:
  MaskedSequences(ExampleSet examples, int64_t max_length, Masker masker, double probability)
      : ExampleSequences(std::move(examples), max_length), masker_(std::move(masker)), probability_(probability) {}

  LengthTotals totals(int set = 0) const override;
  void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const override;

 private:
  Masker masker_;
  double probability_;
};

}  // namespace brisk
