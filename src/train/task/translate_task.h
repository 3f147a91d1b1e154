// The task translate: texts and their translations, a model that reads one and writes the other.
//
//   TranslateTask task;
//   TaskData data = task.prepare(job, {});              // sequences of two row sets: data/examples/pair_sequences.h
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/examples/pair_sequences.h"
#include "train/task/task.h"
#include "train/task/text_evaluation.h"

namespace brisk {

class TranslateTask final : public Task {
 public:
  TaskData prepare(const Job& job, DataRequest request) override;
  BatchLayout batch_layout(const Job& job) const override;
  Description describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const override;
  void write_files(const std::string& run) const override;
  Metrics metrics() const override;  // those of tokens, BLEU and chrF
  // By translating the first pairs of the validation data, in as many parts as a step has, divided over the processes.
  void add_metrics(const Model& model, const ParameterStore& store, const Tokenizer& tokenizer,
                   const Sequences& sequences, Metrics& metrics) const override;
  std::vector<Sample> samples(const Model& model, const ParameterStore& store, const Tokenizer& tokenizer,
                              const Sequences& validation) const override;
  EvaluationData open_evaluation(const TrainedModel& model, const EvaluationRequest& request) const override;
  SmokeSubset take_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) const override;
  std::optional<TryOut> try_out(const std::string& run, const std::string& data) const override;
  std::string usage(const std::string& run) const override;

 private:
  std::shared_ptr<const Tokenizer> target_;  // of the translations, where it is another one; or none
  std::shared_ptr<const PairSequences> train_;
  FittingPairs fit_;         // of the training data
  double target_share_ = 1;  // rows of targets for each row of a source
  TextEvaluation text_evaluation_;
  int64_t sample_count_ = 0;  // of texts that are shown at an evaluation
};

}  // namespace brisk
