#include "train/task/language_model_task.h"

#include <fmt/format.h>

#include "base/files/files.h"
#include "checkpoint/run_directory.h"
#include "data/batch/chunk_sequences.h"

namespace brisk {

TaskData LanguageModelTask::prepare(const Job& job, DataRequest request) {
  const std::string own_tokenizer = request.run.empty() ? "" : request.run + kTokenizerFile;
  prepared_ = prepare_data(job, file_exists(own_tokenizer) ? own_tokenizer : "", std::move(request.model_tokenizer));
  TaskData data;
  data.tokenizer = std::move(prepared_.tokenizer);
  data.train = text_sequences(prepared_.train_stream, prepared_.train.chunks);
  data.validation = text_sequences(prepared_.validation_stream, prepared_.validation.chunks);
  data.sources = prepared_.train.sources;
  data.sequences_per_epoch = prepared_.train.sequences_per_epoch();
  data.rows_per_epoch = prepared_.train.rows_per_epoch();
  data.fingerprint = prepared_.fingerprint;
  data.decided = prepared_.decided;
  data.notes = prepared_.notes;
  data.warnings = prepared_.warnings;
  return data;
}

Task::Description LanguageModelTask::describe_data(const Job& job, const TaskData& data,
                                                   const PackingFigures& packing) const {
  CorpusStatistics statistics = statistics_of(prepared_, job.training.max_length);
  statistics.packing = packing;
  const int64_t asked = job.training.batch_size * job.training.gradient_accumulation_steps * job.training.max_length;
  return {fmt::format("{}\n{}\nvalidation   {} sequences, {} tokens", statistics_text(statistics),
                      step_text(packing, asked), with_commas(data.validation->count()),
                      with_commas(data.validation->total_rows())),
          statistics_json_text(statistics)};
}

Task::EvaluationData LanguageModelTask::open_evaluation(const TrainedModel& model,
                                                        const std::vector<std::string>& paths,
                                                        int64_t max_length) const {
  std::shared_ptr<const TokenStream> stream;
  const CorpusPart part = prepare_evaluation(paths, model.job.data, *model.tokenizer, max_length, stream);
  return {.sequences = text_sequences(stream, part.chunks), .layout = {}, .notes = {}};
}

std::string LanguageModelTask::usage(const std::string& run) const {
  return fmt::format("brisk generate {} --prompt \"...\"", run);
}

}  // namespace brisk
