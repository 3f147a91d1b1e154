#include <brisk/model.h>

#include <algorithm>
#include <utility>

#include "api/loaded_model.h"
#include "base/error.h"
#include "base/terminal/terminal.h"
#include "data/batch/chunk_sequences.h"
#include "data/examples/example_sequences.h"
#include "infer/class_scores.h"
#include "infer/evaluator.h"
#include "train/task/classify_task.h"
#include "train/task/mlm_task.h"
#include "train/task/prepare_table.h"
#include "train/task/prepare_text.h"

namespace brisk {

namespace {

// Rows per micro-batch: the few that suit a CPU would leave a GPU idle.
int64_t evaluation_rows(const TrainedModel& model, int64_t longest) {
  return std::max<int64_t>(longest, model.store.device().is_cuda() ? 32768 : 2048);
}

Evaluation evaluate_sequences(const TrainedModel& model, const Sequences& sequences, const RowCapacity& capacity,
                              const BatchLayout& layout, const char* target_name) {
  Evaluator evaluator(*model.model, model.store, capacity, layout, backend_of(model.store.device()));
  Ledger ledger;
  const EvaluationResult result = evaluator.evaluate(sequences, ledger);
  Evaluation evaluation{.metrics = result.metrics,
                        .targets = result.targets,
                        .target_name = target_name,
                        .tokens = result.tokens,
                        .seconds = ledger.totals().seconds()};
  if (result.classes) {
    evaluation.details = scores_text(*result.classes, model.labels.names());
    evaluation.details_json = scores_json(*result.classes, model.labels.names());
  }
  return evaluation;
}

Evaluation evaluate_text(const TrainedModel& model, const Job& job, const std::vector<std::string>& data,
                         int64_t max_length) {
  model.causal();  // UserError where it does not continue texts
  std::shared_ptr<const TokenStream> stream;
  const CorpusPart part = prepare_evaluation(data, job.data, *model.tokenizer, max_length, stream);
  const int64_t rows = evaluation_rows(model, max_length);
  return evaluate_sequences(model, *text_sequences(stream, part.chunks), {rows, rows, max_length}, {}, "tokens");
}

ExampleSet examples_of(const TrainedModel& model, const Job& job, const std::vector<std::string>& data,
                       const LabelSet& labels, int64_t max_length) {
  std::vector<std::string> notes;
  ExampleSet examples = open_evaluation_examples(data, job, *model.tokenizer, labels, notes);
  for (const std::string& note : notes) say("{}", note);
  check_room_for_text(examples, max_length);
  return examples;
}

// The loss of guessing masked tokens, masked as in training.
Evaluation evaluate_masked(const TrainedModel& model, const Job& job, const std::vector<std::string>& data,
                           int64_t max_length) {
  ExampleSet examples = examples_of(model, job, data, {}, max_length);
  if (!examples.has_pairs()) examples = examples.in_pieces(max_length);
  const Masker masker = masker_of(job, *model.tokenizer);
  const MaskedSequences sequences(std::move(examples), max_length, masker, job.training.mlm_probability);
  const BatchLayout layout = masked_layout(masker);
  return evaluate_sequences(model, sequences, layout.capacity(evaluation_rows(model, max_length), max_length), layout,
                            "masked tokens");
}

// Accuracy with its interval, and all that a confusion matrix says.
Evaluation evaluate_classes(const TrainedModel& model, const Job& job, const std::vector<std::string>& data,
                            int64_t max_length) {
  const ExampleSequences sequences(examples_of(model, job, data, model.labels, max_length), max_length);
  const BatchLayout layout = first_rows_layout(1);
  return evaluate_sequences(model, sequences, layout.capacity(evaluation_rows(model, max_length), max_length), layout,
                            "examples");
}

// The columns may have other names here than in the training data.
Job with_columns(Job job, const EvaluateOptions& options, const std::string& model) {
  const auto choose = [&](const std::string& given, const char* option, bool has_it, std::string& column) {
    if (given.empty()) return;
    if (!has_it) user_error("{} {}: {} was trained without such a column; remove the option", option, given, model);
    column = given;
  };
  const bool classify = job.task == "classify";
  choose(options.text_field, "--text-field", true, job.data.text_field);
  choose(options.label_field, "--label-field", classify, job.data.label_field);
  choose(options.pair_field, "--pair-field", classify && !job.data.pair_field.empty(), job.data.pair_field);
  return job;
}

}  // namespace

Evaluation LoadedModel::evaluate(const std::vector<std::string>& data, const EvaluateOptions& options) {
  const RuntimeScope scope(content_->runtime);
  const TrainedModel& model = *content_->model;
  const Job job = with_columns(model.job, options, model.path);
  if (job.task == "classify") require_classifier(model);
  const int64_t max_length = content_->length(options.max_length);
  return job.task == "classify" ? evaluate_classes(model, job, data, max_length)
         : job.task == "mlm"    ? evaluate_masked(model, job, data, max_length)
                                : evaluate_text(model, job, data, max_length);
}

}  // namespace brisk
