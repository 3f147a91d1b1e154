#include "train/classify_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/example_sequences.h"
#include "data/loader.h"
#include "train/class_scores.h"
#include "train/label_file.h"
#include "train/model_config.h"

namespace brisk {

TaskData ClassifyTask::prepare(Job& job, DataRequest request) {
  data_ = prepare_encoder_data(job, std::move(request));
  if (job.training.class_weights == "balanced") {
    const std::vector<float> weights = balanced_class_weights(data_.train.class_counts());
    data_.train.set_class_weights(weights);
    data_.notes.push_back(fmt::format("class weights: balanced, {:.3g} to {:.3g}",
                                      *std::min_element(weights.begin(), weights.end()),
                                      *std::max_element(weights.begin(), weights.end())));
  }
  const auto sequences = [&](const ExampleSet& examples) {
    return std::make_shared<const ExampleSequences>(examples, job.training.max_length);
  };
  return hand_over(data_, sequences(data_.train), sequences(data_.validation));
}

ModelConfig ClassifyTask::model_config(const Job& job) const { return encoder_config(job); }

RowPicking first_row_picking(int64_t sequences_per_step) {
  // An evaluation packs as many short texts as fit: 512 rows after the last layer are a few MiB.
  constexpr int64_t kUsual = 512;
  RowPicking picking;
  picking.most_sequences = std::max(kUsual, sequences_per_step);
  picking.picked = [](const RowCapacity& tokens) { return RowCapacity{tokens.sequences, tokens.sequences, 1}; };
  return picking;
}

RowPicking ClassifyTask::picking(const Job& job) const {
  return first_row_picking(job.training.batch_size * job.training.gradient_accumulation_steps);
}

Task::Description ClassifyTask::describe_data(const Job& job, const TaskData& data,
                                              const PackingFigures& packing) const {
  return describe_examples(data_, job, data, packing);
}

std::string ClassifyTask::describe_model(const Job& job) const {
  return fmt::format("{}; {} classes: {}; the best model is that of the best validation {}", encoder_text(job),
                     data_.labels.count(), data_.labels.text(), job.training.best_by);
}

void ClassifyTask::write_files(const std::string& run) const { write_labels(run, data_.labels); }

std::string ClassifyTask::quality(const EvaluationResult& result) const {
  const auto [low, high] = result.classes->accuracy_interval();
  return fmt::format("accuracy {:.2f} % (95 %: {:.2f} to {:.2f}), F1 {:.2f} %, loss {:.4f}", 100 * result.accuracy,
                     100 * low, 100 * high, 100 * result.classes->macro().f1, result.loss);
}

Task::Details ClassifyTask::details(const EvaluationResult& result) const {
  return {scores_text(*result.classes, data_.labels.names()), scores_json(*result.classes, data_.labels.names())};
}

}  // namespace brisk
