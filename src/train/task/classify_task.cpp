#include "train/task/classify_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files/files.h"
#include "base/machine/machine.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "data/batch/loader.h"
#include "data/examples/example_sequences.h"
#include "data/examples/example_statistics.h"
#include "infer/answer/class_scores.h"
#include "infer/answer/predict.h"
#include "infer/architecture/architecture.h"
#include "infer/open/label_file.h"
#include "infer/open/model_source.h"
#include "job/job_options.h"
#include "models/encoder.h"
#include "train/task/class_weights.h"
#include "train/task/frozen_activations.h"
#include "train/task/smoke_subset.h"
#include "train/task/teacher.h"
#include "train/task/worth_caching.h"

namespace brisk {

std::string ClassifyTask::needs_cpu(const Job& job) const {
  return job.training.teacher.empty() ? "" : "a GPU cannot learn from training.teacher yet";
}

TaskData ClassifyTask::prepare(const Job& job, DataRequest request) {
  data_ = prepare_table(job, std::move(request));
  weigh_classes(job, data_);
  train_ = std::make_shared<ExampleSequences>(data_.train, job.training.max_length);
  validation_ = std::make_shared<ExampleSequences>(data_.validation, job.training.max_length);
  if (!job.training.teacher.empty()) {
    const TeacherAnswers teacher = ask_teacher(with_found(job, data_.found), data_.labels, data_.train.data().rows());
    train_->learn_from(teacher.logits, job.training.distillation_temperature);
    data_.notes.push_back(teacher.note);
  }
  return hand_over(data_, train_, validation_);
}

ModelConfig ClassifyTask::model_config(const Job& job) const {
  ModelConfig config = training_config(job);
  if (auto* encoder = config.get_if<EncoderConfig>()) encoder->cached_layers = cached_layers_;
  return config;
}

std::vector<std::string> ClassifyTask::compute_ahead(const Job& job, DType compute_type, const std::string& checkpoint,
                                                     Device& device, ProcessGroup& processes) {
  const ModelConfig config = training_config(job);
  const auto* encoder = config.get_if<EncoderConfig>();
  const int64_t layers = encoder != nullptr ? encoder->cacheable_layers() : 0, max_length = job.training.max_length;
  if (!job.training.cache_frozen || layers == 0 || device.is_cuda() || !is_worth_caching(job, *train_)) return {};
  const FrozenLayers frozen(*encoder, layers, compute_type, [&](ParameterStore& store) {
    const ModelSource source = open_model_source(checkpoint.empty() ? job.model.from : checkpoint);
    const bool student = job.model.num_layers < source.model.num_layers;
    source.start(store, student ? spread_layers(source.model.num_layers, job.model.num_layers) : std::vector<int64_t>(),
                 nonfinite_of(job));
  });
  std::vector<const ExampleSet*> missing;
  for (const ExampleSet* part : {&data_.train, &data_.validation}) {
    const bool same = part == &data_.validation && &part->data() == &data_.train.data();
    if (!same && !frozen.are_there(*part, max_length)) missing.push_back(part);
  }
  int64_t needed = 0;
  for (const ExampleSet* part : missing) needed += frozen.file_bytes(*part, max_length);
  const std::string directory = data_.train.data().cache_directory();
  const std::string what = fmt::format("the activations of the {} frozen layers", layers);
  if (std::string line = no_room_to_cache(needed, directory, what, processes); !line.empty()) return {std::move(line)};
  // The first process computes them, and the others find them in the cache.
  if (!processes.is_first()) processes.wait_for_all();
  const auto train_rows = frozen.rows_of(data_.train, max_length);
  const auto validation_rows = frozen.rows_of(data_.validation, max_length);
  if (processes.is_first()) processes.wait_for_all();
  train_->read_inputs(train_rows, frozen.of_picked_rows());
  validation_->read_inputs(validation_rows, frozen.of_picked_rows());
  cached_layers_ = layers;
  return {fmt::format("frozen layers: the activations of the first {} {} {} ({}), and are not computed again", layers,
                      train_rows->reused() && validation_rows->reused() ? "were in" : "were computed and are in",
                      train_rows->path(), format_bytes(static_cast<double>(file_size(train_rows->path()))))};
}

BatchLayout ClassifyTask::batch_layout(const Job& job) const {
  return first_rows_layout(job.training.batch_size * job.training.gradient_accumulation_steps);
}

Task::Description ClassifyTask::describe_data(const Job& job, const TaskData& data,
                                              const PackingFigures& packing) const {
  return describe_examples(data_, job, data, packing);
}

std::string ClassifyTask::describe_model(const Job& job) const {
  return fmt::format("{}; {}", Task::describe_model(job),
                     describe_classes(data_.labels, validation_->empty() ? "" : job.training.best_by));
}

void ClassifyTask::write_files(const std::string& run) const { write_labels(run, data_.labels); }

Task::Description ClassifyTask::details(const EvaluationResult& result, const LabelSet& labels) const {
  return {scores_text(*result.classes, labels.names()), scores_json(*result.classes, labels.names())};
}

Task::EvaluationData ClassifyTask::open_evaluation(const TrainedModel& model, const EvaluationRequest& request) const {
  const int64_t max_length = request.max_length;
  require_classifier(model);
  EvaluationData data;
  ExampleSet examples = open_evaluation_examples(request.paths, model.job, *model.tokenizer, model.labels, data.notes);
  check_room_for_text(examples, max_length);
  for (int64_t i = 0; i < examples.count(); ++i) data.cut += examples.full_length(i) > max_length;
  data.sequences = std::make_shared<const ExampleSequences>(std::move(examples), max_length);
  data.layout = first_rows_layout(1);
  return data;
}

SmokeSubset ClassifyTask::take_subset(const Job& job, const std::string& folder, const SubsetSize& size,
                                      Job& small) const {
  return take_table_subset(job, folder, size, small);
}

std::optional<Task::TryOut> ClassifyTask::try_out(const std::string& run, const std::string& data) const {
  const auto count = [](const std::string& output) {  // each answer has an object of probabilities
    return fmt::format("{} answers", std::count(output.begin(), output.end(), '{') / 2);
  };
  return TryOut{"predict", {"predict", run, "--data", data}, count};
}

std::string ClassifyTask::usage(const std::string& run) const { return fmt::format("brisk predict {} \"...\"", run); }

std::unique_ptr<Task> make_classify_task() { return std::make_unique<ClassifyTask>(); }

}  // namespace brisk
