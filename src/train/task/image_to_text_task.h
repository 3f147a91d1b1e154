// The task image_to_text: images and their texts, a model that reads the one and writes the other: captions, lines that are
// recognised, pages that are translated.
//
//   ImageToTextTask task;
//   TaskData data = task.prepare(job, {});              // sequences of several row sets: data/images/image_sequences.h
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/images/image_sequences.h"
#include "infer/forward/image_batch_layout.h"
#include "train/task/prepare_images.h"
#include "train/task/task.h"
#include "train/task/text_evaluation.h"

namespace brisk {

class ImageToTextTask final : public Task {
 public:
  TaskData prepare(const Job& job, DataRequest request) override;
  ModelConfig model_config(const Job& job) const override;
  BatchLayout batch_layout(const Job& job) const override;
  // What frozen encoders make of the images.
  std::vector<std::string> compute_ahead(const Job& job, DType compute_type, const std::string& checkpoint,
                                         Device& device, ProcessGroup& processes) override;
  Description describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const override;
  Metrics metrics() const override;  // those of tokens, and of texts that are written
  // By writing the texts of the first images of the validation data.
  void add_metrics(const Model& model, const ParameterStore& store, const Tokenizer& tokenizer,
                   const Sequences& sequences, Metrics& metrics) const override;
  std::vector<Sample> samples(const Model& model, const ParameterStore& store, const Tokenizer& tokenizer,
                              const Sequences& validation) const override;
  EvaluationData open_evaluation(const TrainedModel& model, const EvaluationRequest& request) const override;
  SmokeSubset take_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) const override;
  std::optional<TryOut> try_out(const std::string& run, const std::string& data) const override;
  std::string usage(const std::string& run) const override;

 private:
  ImageData data_;  // all of it but the tokenizer
  ImageLayout layout_;
  std::shared_ptr<ImageTextSequences> train_, validation_;
  bool cached_ = false;     // what the encoders make of the images comes with the batch
  int64_t too_long_ = 0;    // texts of the training data
  TargetRows target_rows_;  // of the training data
  TextEvaluation text_evaluation_;
  int64_t sample_count_ = 0;  // of images that are shown at an evaluation
};

}  // namespace brisk
