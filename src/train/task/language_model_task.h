// The task language_model: documents in pieces, a decoder, the next token of every row.
//
//   LanguageModelTask task;
//   TaskData data = task.prepare(job, {});              // model.vocab_size, the tokenizer's, is in data.found
#pragma once

#include "train/task/prepare_text.h"
#include "train/task/task.h"

namespace brisk {

class LanguageModelTask final : public Task {
 public:
  TaskData prepare(const Job& job, DataRequest request) override;
  Description describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const override;
  Metrics metrics() const override;  // those of tokens, and bits per byte
  void add_metrics(const Model& model, const ParameterStore& store, const Tokenizer& tokenizer,
                   const Sequences& sequences, Metrics& metrics) const override;
  EvaluationData open_evaluation(const TrainedModel& model, const EvaluationRequest& request) const override;
  std::optional<TryOut> try_out(const std::string& run, const std::string& data) const override;
  std::string usage(const std::string& run) const override;

 private:
  PreparedData prepared_;  // all of it but the tokenizer
};

}  // namespace brisk
