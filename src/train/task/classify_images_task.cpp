#include "train/task/classify_images_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "data/examples/example_statistics.h"
#include "infer/answer/class_scores.h"
#include "infer/answer/predict.h"
#include "infer/architecture/architecture.h"
#include "infer/forward/image_batch_layout.h"
#include "infer/open/label_file.h"
#include "train/task/class_weights.h"
#include "train/task/image_subset.h"

namespace brisk {

TaskData ClassifyImagesTask::prepare(const Job& job, DataRequest request) {
  if (!job.training.teacher.empty())
    user_error("training.teacher = {}: a classifier of images cannot learn from one; remove it", job.training.teacher);
  const ImageLayout layout = architecture_of(job.model).image_layout(job.model);
  data_ = prepare_images(job, std::move(request), layout);
  weigh_classes(job, data_.table);
  train_ = std::make_shared<const ImageLabelSequences>(data_.table.train, data_.train_images, layout);
  validation_ = std::make_shared<const ImageLabelSequences>(data_.table.validation, data_.validation_images, layout);
  TaskData data = hand_over(data_.table, train_, validation_);
  data.notes.push_back("image cache: " + data_.train_images->cache_note());
  return data;
}

std::string ClassifyImagesTask::needs_cpu(const Job& /*job*/) const { return {}; }

BatchLayout ClassifyImagesTask::batch_layout(const Job& job) const {
  return image_label_layout(architecture_of(job.model).image_layout(job.model));
}

Task::Description ClassifyImagesTask::describe_data(const Job& job, const TaskData& data,
                                                    const PackingFigures& packing) const {
  const ImageLayout layout = architecture_of(job.model).image_layout(job.model);
  const int64_t rows = layout.images.front().rows();
  const ExampleStatistics statistics = example_statistics(train_->examples(), rows, [rows](int64_t) { return rows; });
  return {fmt::format("{}{}\nclasses      {}\n{}\n{}\nvalidation   {} images",
                      describe_image_input(layout, train_->count()),
                      statistics.copies > 0 ? fmt::format(", {} of them copies", with_commas(statistics.copies)) : "",
                      with_commas(std::ssize(statistics.class_counts)), class_balance_text(statistics),
                      step_text(packing, 0), with_commas(data.validation->count())),
          example_statistics_json_text(statistics)};
}

std::string ClassifyImagesTask::describe_model(const Job& job) const {
  return fmt::format("{}; {}", Task::describe_model(job),
                     describe_classes(data_.table.labels, validation_->empty() ? "" : job.training.best_by));
}

void ClassifyImagesTask::write_files(const std::string& run) const { write_labels(run, data_.table.labels); }

Task::Description ClassifyImagesTask::details(const EvaluationResult& result, const LabelSet& labels) const {
  return {scores_text(*result.classes, labels.names()), scores_json(*result.classes, labels.names())};
}

Task::EvaluationData ClassifyImagesTask::open_evaluation(const TrainedModel& model,
                                                         const EvaluationRequest& request) const {
  require_classifier(model);
  EvaluationData data;
  const ImageLayout layout = architecture_of(model.job.model).image_layout(model.job.model);
  OtherImages other = open_other_images(request.paths, model.job, nullptr, model.labels, layout);
  data.notes = std::move(other.notes);
  data.sequences = std::make_shared<const ImageLabelSequences>(other.rows.examples, other.images, layout);
  data.layout = image_label_layout(layout);
  return data;
}

SmokeSubset ClassifyImagesTask::take_subset(const Job& job, const std::string& folder, const SubsetSize& size,
                                            Job& small) const {
  return take_image_subset(job, folder, size, small);
}

std::optional<Task::TryOut> ClassifyImagesTask::try_out(const std::string& run, const std::string& data) const {
  const auto count = [](const std::string& output) {  // each answer has an object of probabilities
    return fmt::format("{} answers", std::count(output.begin(), output.end(), '{') / 2);
  };
  return TryOut{"predict", {"predict", run, "--images", data}, count};
}

std::string ClassifyImagesTask::usage(const std::string& run) const {
  return fmt::format("brisk predict {} --images FOLDER", run);
}

std::unique_ptr<Task> ClassifyTask::for_images() const { return std::make_unique<ClassifyImagesTask>(); }

}  // namespace brisk
