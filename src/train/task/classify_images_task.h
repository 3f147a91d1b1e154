// The task classify where the model reads images: tables of images and labels, or a folder with folders of images for each
// class; an encoder of images, the class of each.
#pragma once

#include "data/images/image_sequences.h"
#include "train/task/classify_task.h"
#include "train/task/prepare_images.h"

namespace brisk {

class ClassifyImagesTask final : public Task {
 public:
  TaskData prepare(const Job& job, DataRequest request) override;
  BatchLayout batch_layout(const Job& job) const override;
  std::string needs_cpu(const Job& job) const override;
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

 private:
  ImageData data_;
  std::shared_ptr<const ImageLabelSequences> train_, validation_;
};

}  // namespace brisk
