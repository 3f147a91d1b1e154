#include "train/task/mlm_task.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "data/batch/loader.h"
#include "data/examples/example_sequences.h"
#include "data/examples/masking.h"
#include "train/task/smoke_subset.h"

namespace brisk {

namespace {

Masker masker_of(const Job& job, const Tokenizer& tokenizer) {
  return {tokenizer, MaskingOptions{.probability = job.training.mlm_probability,
                                    .whole_words = job.training.whole_word_masking,
                                    .seed = static_cast<uint64_t>(job.training.seed)}};
}

BatchLayout masked_layout(double probability, int64_t specials) {
  BatchLayout layout;
  layout.others.push_back(
      {[=](const RowCapacity& tokens) {
         return RowCapacity{most_picked(probability, specials, tokens.rows), tokens.sequences, tokens.longest};
       },
       /*derived_from=*/0});
  return layout;
}

std::shared_ptr<const Sequences> masked(ExampleSet examples, const Masker& masker, const Job& job, int64_t max_length) {
  return std::make_shared<const MaskedSequences>(std::move(examples), max_length, masker, job.training.mlm_probability);
}

}  // namespace

TaskData MlmTask::prepare(const Job& job, DataRequest request) {
  data_ = prepare_table(job, std::move(request));
  const int64_t max_length = job.training.max_length;
  for (ExampleSet* part : {&data_.train, &data_.validation}) {
    if (!part->has_pairs()) *part = part->in_pieces(max_length);
  }
  // What is masked is what is evaluated.
  if (data_.validation_fingerprint) {
    *data_.validation_fingerprint =
        hash_bytes(fmt::format("{} {}", job.training.mlm_probability, job.training.whole_word_masking),
                   *data_.validation_fingerprint);
  }
  const Masker masker = masker_of(job, *data_.tokenizer);
  specials_ = masker.specials();
  return hand_over(data_, masked(data_.train, masker, job, max_length),
                   masked(data_.validation, masker, job, max_length));
}

BatchLayout MlmTask::batch_layout(const Job& job) const {
  return masked_layout(job.training.mlm_probability, specials_);
}

Task::EvaluationData MlmTask::open_evaluation(const TrainedModel& model, const EvaluationRequest& request) const {
  const int64_t max_length = request.max_length;
  EvaluationData data;
  ExampleSet examples = open_evaluation_examples(request.paths, model.job, *model.tokenizer, {}, data.notes);
  check_room_for_text(examples, max_length);
  if (!examples.has_pairs()) examples = examples.in_pieces(max_length);
  const Masker masker = masker_of(model.job, *model.tokenizer);
  data.sequences = masked(std::move(examples), masker, model.job, max_length);
  data.layout = masked_layout(model.job.training.mlm_probability, masker.specials());
  return data;
}

SmokeSubset MlmTask::take_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) const {
  return take_table_subset(job, folder, size, small);
}

std::string MlmTask::usage(const std::string& run) const {
  return fmt::format(
      "brisk eval {0} --data TABLE\n  fine-tune it: \"model\": {{\"from\": \"{0}\"}} in a job of task classify", run);
}

Task::Description MlmTask::describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const {
  return describe_examples(
      data_, job, data, packing,
      fmt::format("masking      {:g} % of the tokens{}, chosen anew in each epoch\n",
                  100 * job.training.mlm_probability, job.training.whole_word_masking ? ", whole words" : ""));
}

std::unique_ptr<Task> make_mlm_task() { return std::make_unique<MlmTask>(); }

}  // namespace brisk
