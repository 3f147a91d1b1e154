#include "train/task/mlm_task.h"

#include <fmt/format.h>

#include "data/batch/loader.h"
#include "data/examples/example_sequences.h"

namespace brisk {

Masker masker_of(const Job& job, const Tokenizer& tokenizer) {
  return {tokenizer, MaskingOptions{.probability = job.training.mlm_probability,
                                    .whole_words = job.training.whole_word_masking,
                                    .seed = static_cast<uint64_t>(job.training.seed)}};
}

BatchLayout masked_layout(const Masker& masker) {
  BatchLayout layout;
  layout.others.push_back({[masker](const RowCapacity& tokens) {
                             return RowCapacity{masker.most_picked(tokens.rows), tokens.sequences, tokens.longest};
                           },
                           /*derived_from=*/0});
  return layout;
}

TaskData MlmTask::prepare(Job& job, DataRequest request) {
  data_ = prepare_encoder_data(job, std::move(request));
  const TrainingOptions& training = job.training;
  for (ExampleSet* part : {&data_.train, &data_.validation}) {
    if (!part->has_pairs()) *part = part->in_pieces(training.max_length);
  }
  masker_ = masker_of(job, *data_.tokenizer);
  const auto masked = [&](const ExampleSet& examples) {
    return std::make_shared<const MaskedSequences>(examples, training.max_length, *masker_, training.mlm_probability);
  };
  return hand_over(data_, masked(data_.train), masked(data_.validation));
}

BatchLayout MlmTask::batch_layout(const Job& /*job*/) const { return masked_layout(*masker_); }

Task::Description MlmTask::describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const {
  return describe_examples(
      data_, job, data, packing,
      fmt::format("masking      {:g} % of the tokens{}, other ones in each epoch\n", 100 * job.training.mlm_probability,
                  job.training.whole_word_masking ? ", whole words" : ""));
}

}  // namespace brisk
