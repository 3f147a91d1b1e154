// The rows of a table as sequences for the loader: whole texts with one label each, or texts of which some tokens are
// masked and have to be guessed.
//
//   auto labelled = std::make_shared<const ExampleSequences>(split.train, /*max_length=*/128);
//   auto masked = std::make_shared<const MaskedSequences>(split.train, 128, Masker(*tokenizer, {.seed = 1}));
#pragma once

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
  int64_t rows(int64_t index) const override { return examples_.length(index, max_length_); }
  int64_t longest() const override { return examples_.longest(max_length_); }
  int64_t total_rows() const override { return total_rows_; }
  double squared_rows() const override { return squared_rows_; }
  double picked_rows() const override { return 1; }
  void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const override;

  const ExampleSet& examples() const { return examples_; }

  // The picked rows carry what a teacher says as well: shares of the classes, from its logits at this temperature, of
  // which there is a row for each row of the data.
  void learn_from(std::shared_ptr<const ExampleActivations> logits, double temperature);
  // The micro-batch carries, besides the tokens, what a model reads in their place: of each row, or of the picked ones.
  void read_inputs(std::shared_ptr<const ExampleActivations> inputs, bool of_picked_rows);

 protected:
  ExampleSet examples_;
  int64_t max_length_;

 private:
  void append_shares(int64_t index, std::vector<float>& shares) const;

  int64_t total_rows_ = 0;
  double squared_rows_ = 0;
  std::shared_ptr<const ExampleActivations> teacher_logits_;
  double temperature_ = 1;
  std::shared_ptr<const ExampleActivations> inputs_;
  bool inputs_of_picked_ = false;
};

class MaskedSequences final : public ExampleSequences {
 public:
  MaskedSequences(ExampleSet examples, int64_t max_length, Masker masker, double probability)
      : ExampleSequences(std::move(examples), max_length), masker_(std::move(masker)), probability_(probability) {}

  double picked_rows() const override;
  void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const override;

 private:
  Masker masker_;
  double probability_;
};

}  // namespace brisk
