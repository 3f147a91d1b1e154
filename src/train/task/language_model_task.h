// The task language_model: documents in pieces, a decoder, the next token of every row.
//
//   LanguageModelTask task;
//   TaskData data = task.prepare(job, {});              // job.model.vocab_size is the tokenizer's now
#pragma once

#include "train/task/prepare_text.h"
#include "train/task/task.h"

namespace brisk {

class LanguageModelTask final : public Task {
 public:
  TaskData prepare(Job& job, DataRequest request) override;
  Description describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const override;
  Metrics metrics() const override { return token_metrics(); }

 private:
  PreparedData prepared_;  // all of it but the tokenizer
};

}  // namespace brisk
