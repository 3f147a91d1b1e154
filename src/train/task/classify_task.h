// The task classify: tables of texts and labels, an encoder, the class of each text from its first row.
//
//   ClassifyTask task;
//   TaskData data = task.prepare(job, {});              // model.num_labels is in data.found now
#pragma once

#include "data/examples/example_sequences.h"
#include "train/task/prepare_table.h"
#include "train/task/task.h"

namespace brisk {

class ClassifyTask final : public Task {
 public:
  TaskData prepare(const Job& job, DataRequest request) override;
  ModelConfig model_config(const Job& job) const override;
  BatchLayout batch_layout(const Job& job) const override;
  std::string needs_cpu(const Job& job) const override;
  std::vector<std::string> compute_ahead(const Job& job, DType compute_type, const std::string& checkpoint,
                                         Device& device, ProcessGroup& processes) override;
  Description describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const override;
  std::string describe_model(const Job& job) const override;
  void write_files(const std::string& run) const override;
  Metrics metrics() const override { return class_metrics(); }
  Description details(const EvaluationResult& result, const LabelSet& labels) const override;
  EvaluationData open_evaluation(const TrainedModel& model, const EvaluationRequest& request) const override;
  std::unique_ptr<Evaluator> make_evaluator(const EvaluatorParts& parts) const override {
    return make_class_evaluator(parts);
  }
  SmokeSubset take_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) const override;
  std::optional<TryOut> try_out(const std::string& run, const std::string& data) const override;
  std::string usage(const std::string& run) const override;
  std::unique_ptr<Task> for_images() const override;

 private:
  TableData data_;  // all of it but the tokenizer
  std::shared_ptr<ExampleSequences> train_, validation_;
  int64_t cached_layers_ = 0;
};

}  // namespace brisk
