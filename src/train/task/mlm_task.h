// The task mlm: texts of which some tokens are masked, an encoder, the tokens that were there.
//
//   MlmTask task;
//   TaskData data = task.prepare(job, {});              // long texts in pieces, masked anew in each epoch
#pragma once

#include "train/task/prepare_table.h"
#include "train/task/task.h"

namespace brisk {

class MlmTask final : public Task {
 public:
  TaskData prepare(const Job& job, DataRequest request) override;
  BatchLayout batch_layout(const Job& job) const override;
  Description describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const override;
  Metrics metrics() const override { return token_metrics(); }
  // Masked as in training.
  EvaluationData open_evaluation(const TrainedModel& model, const EvaluationRequest& request) const override;
  SmokeSubset take_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) const override;
  std::string usage(const std::string& run) const override;

 private:
  TableData data_;        // all of it but the tokenizer
  int64_t specials_ = 2;  // tokens around a text: [CLS] and [SEP], as long as no tokenizer says otherwise
};

}  // namespace brisk
