// The task mlm: texts of which some tokens are masked, an encoder, the tokens that were there.
//
//   MlmTask task;
//   TaskData data = task.prepare(job, {});              // long texts in pieces, masked anew in each epoch
#pragma once

#include <optional>

#include "data/examples/masking.h"
#include "train/task/prepare_table.h"
#include "train/task/task.h"

namespace brisk {

class MlmTask final : public Task {
 public:
  TaskData prepare(Job& job, DataRequest request) override;
  BatchLayout batch_layout(const Job& job) const override;
  Description describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const override;
  Metrics metrics() const override { return token_metrics(); }

 private:
  EncoderData data_;  // all of it but the tokenizer
  std::optional<Masker> masker_;
};

// How a job masks, and which rows of a micro-batch have targets then.
Masker masker_of(const Job& job, const Tokenizer& tokenizer);
BatchLayout masked_layout(const Masker& masker);

}  // namespace brisk
