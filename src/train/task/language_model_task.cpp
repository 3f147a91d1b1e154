#include "train/task/language_model_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files/files.h"
#include "base/text/plural.h"
#include "checkpoint/run_directory.h"
#include "data/batch/chunk_sequences.h"
#include "data/corpus/text_bytes.h"

namespace brisk {

namespace {

std::shared_ptr<const Sequences> sequences_with_bytes(std::shared_ptr<const TokenStream> stream, ChunkList chunks,
                                                      const Tokenizer& tokenizer) {
  const int64_t bytes = text_bytes(*stream, chunks, tokenizer).value_or(0);
  return text_sequences(std::move(stream), std::move(chunks), bytes);
}

}  // namespace

Metrics LanguageModelTask::metrics() const {
  Metrics metrics = token_metrics();
  metrics.add(standard_metric("bits_per_byte"));
  return metrics;
}

void LanguageModelTask::add_metrics(const Model& /*model*/, const ParameterStore& /*store*/,
                                    const Tokenizer& /*tokenizer*/, const Sequences& sequences,
                                    Metrics& metrics) const {
  if (sequences.text_bytes() == 0) return;
  const double bits = metrics.value("loss") * static_cast<double>(sequences.total_rows()) / std::log(2);
  metrics.add(standard_metric("bits_per_byte", bits / static_cast<double>(sequences.text_bytes())));
}

TaskData LanguageModelTask::prepare(const Job& job, DataRequest request) {
  const std::string own_tokenizer = request.run.empty() ? "" : request.run + kTokenizerFile;
  prepared_ = prepare_data(job, file_exists(own_tokenizer) ? own_tokenizer : "", std::move(request.model_tokenizer));
  TaskData data;
  data.tokenizer = std::move(prepared_.tokenizer);
  data.train = text_sequences(prepared_.train_stream, prepared_.train.chunks);
  data.validation = sequences_with_bytes(prepared_.validation_stream, prepared_.validation.chunks, *data.tokenizer);
  if (!data.validation->empty()) {
    data.validation_fingerprint =
        text_fingerprint(*prepared_.validation_stream, prepared_.validation.chunks, *data.tokenizer);
  }
  data.sources = prepared_.train.sources;
  data.sequences_per_epoch = prepared_.train.sequences_per_epoch();
  data.rows_per_epoch = prepared_.train.rows_per_epoch();
  data.fingerprint = prepared_.fingerprint;
  data.found = prepared_.found;
  data.cache_files = prepared_.cache_files;
  data.notes = prepared_.notes;
  data.warnings = prepared_.warnings;
  data.warnings_of_all = prepared_.warnings_of_all;
  return data;
}

Task::Description LanguageModelTask::describe_data(const Job& job, const TaskData& data,
                                                   const PackingFigures& packing) const {
  CorpusStatistics statistics = statistics_of(prepared_, job.training.max_length);
  statistics.packing = packing;
  const auto counted = [](int64_t count, const char* noun) {
    return with_commas(count) + " " + plural_noun(count, noun);
  };
  return {fmt::format("{}\n{}\nvalidation   {}, {}", statistics_text(statistics),
                      step_text(packing, job.training.max_length), counted(data.validation->count(), "sequence"),
                      counted(data.validation->total_rows(), "token")),
          statistics_json_text(statistics)};
}

Task::EvaluationData LanguageModelTask::open_evaluation(const TrainedModel& model,
                                                        const EvaluationRequest& request) const {
  const int64_t max_length = request.max_length;
  std::shared_ptr<const TokenStream> stream;
  // Windows overlap as in training; shorter sequences than there may be shorter than their stride.
  const int64_t stride = std::min(model.job.training.window_stride, max_length);
  const CorpusPart part =
      prepare_evaluation(request.paths, model.job.data, *model.tokenizer, max_length, stride, stream);
  std::vector<std::string> notes;
  if (model.job.model.reference) notes.emplace_back(ModelOptions::kNotALanguageModel);
  return {.sequences = sequences_with_bytes(stream, part.chunks, *model.tokenizer), .layout = {}, .notes = notes};
}

std::optional<Task::TryOut> LanguageModelTask::try_out(const std::string& run, const std::string& /*data*/) const {
  return TryOut{"generate", {"generate", run, "--max-tokens", "16", "--temperature", "0"}, [](const std::string&) {
                  return std::string("16 tokens");
                }};
}

std::string LanguageModelTask::usage(const std::string& run) const {
  return fmt::format("brisk generate {} --prompt \"...\"", run);
}

std::unique_ptr<Task> make_language_model_task() { return std::make_unique<LanguageModelTask>(); }

}  // namespace brisk
