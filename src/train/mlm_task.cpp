#include "train/mlm_task.h"

#include <fmt/format.h>

#include "data/example_sequences.h"
#include "data/example_statistics.h"
#include "data/loader.h"
#include "train/model_config.h"
#include "train/tables.h"

namespace brisk {

Masker masker_of(const Job& job, const Tokenizer& tokenizer) {
  return {tokenizer, MaskingOptions{.probability = job.training.mlm_probability,
                                    .whole_words = job.training.whole_word_masking,
                                    .seed = static_cast<uint64_t>(job.training.seed)}};
}

RowPicking masked_picking(const Masker& masker) {
  RowPicking picking;
  picking.picked = [masker](const RowCapacity& tokens) {
    return RowCapacity{masker.most_picked(tokens.rows), tokens.sequences, tokens.longest};
  };
  return picking;
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
  TaskData data;
  data.tokenizer = std::move(data_.tokenizer);
  data.train = masked(data_.train);
  data.validation = masked(data_.validation);
  data.sequences_per_epoch = data.train->count();
  data.rows_per_epoch = static_cast<double>(data.train->total_rows());
  data.fingerprint = data_.fingerprint;
  data.notes = data_.notes;
  data.warnings = data_.warnings;
  return data;
}

ModelConfig MlmTask::model_config(const Job& job) const { return encoder_config(job); }

RowPicking MlmTask::picking(const Job& /*job*/) const { return masked_picking(*masker_); }

Task::Description MlmTask::describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const {
  const ExampleStatistics statistics = example_statistics(data_.train, job.training.max_length);
  return {fmt::format("{}\n{}\nmasking      {:g} % of the tokens{}, other ones in each epoch\nvalidation: {} texts, {} "
                      "tokens",
                      example_statistics_text(statistics), step_text(packing), 100 * job.training.mlm_probability,
                      job.training.whole_word_masking ? ", whole words" : "", data.validation->count(),
                      data.validation->total_rows()),
          example_statistics_json_text(statistics)};
}

std::string MlmTask::describe_model(const Job& job) const { return encoder_text(job.model); }

std::string MlmTask::quality(const EvaluationResult& result) const {
  return fmt::format("loss {:.4f}, perplexity {}, accuracy {:.2f} % of {} masked tokens", result.loss,
                     format_perplexity(result.perplexity()), 100 * result.accuracy, result.targets);
}

}  // namespace brisk
