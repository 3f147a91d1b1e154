// The task language_model: documents in pieces, a decoder, the next token of every row.
#pragma once

#include "train/prepare.h"
#include "train/task.h"

namespace brisk {

class LanguageModelTask final : public Task {
 public:
  TaskData prepare(Job& job, DataRequest request) override;
  ModelConfig model_config(const Job& job) const override;
  Description describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const override;
  std::string describe_model(const Job& job) const override;
  std::string quality(const EvaluationResult& result) const override;

 private:
  PreparedData prepared_;  // all of it but the tokenizer
};

}  // namespace brisk
