#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/limits.h"
#include "data/batch/chunk_sequences.h"
#include "data/examples/example_sequences.h"
#include "infer/class_scores.h"
#include "infer/evaluator.h"
#include "infer/precision.h"
#include "infer/predict.h"
#include "infer/trained_model.h"
#include "train/record/run_text.h"
#include "train/task/classify_task.h"
#include "train/task/mlm_task.h"
#include "train/task/prepare_table.h"
#include "train/task/prepare_text.h"

namespace brisk {

namespace {

struct EvalArguments {
  std::string model, tokenizer, text_field, label_field, pair_field;
  std::vector<std::string> data;
  int64_t max_length = 0;
  bool json = false, fp32 = false;
  std::string device = "auto";
};

// Rows per micro-batch: the few that suit a CPU would leave a GPU idle.
int64_t evaluation_rows(const TrainedModel& model, int64_t longest) {
  return std::max<int64_t>(longest, model.store.device().is_cuda() ? 32768 : 2048);
}

// Maximum tokens per sequence.
int64_t length_of(const EvalArguments& arguments, const TrainedModel& model) {
  const int64_t usual = model.job.training.max_length, positions = std::max(usual, model.job.model.context);
  check_max_length(arguments.max_length, positions);
  return arguments.max_length > 0 ? arguments.max_length : usual;
}

std::string precision_of(const TrainedModel& model) {
  return precision_name(model.store.compute_type(), ProductFormat::own);
}

void print_loss(const EvalArguments& arguments, const TrainedModel& model, const EvaluationResult& result,
                double seconds) {
  const std::string precision = precision_of(model);
  say("{}, computed in {}", model.source, precision);
  if (arguments.json) {
    const nlohmann::ordered_json json = {{"loss", result.loss},         {"perplexity", result.perplexity()},
                                         {"accuracy", result.accuracy}, {"tokens", result.targets},
                                         {"seconds", seconds},          {"checkpoint", model.source},
                                         {"precision", precision}};
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("loss {:.4f}, perplexity {}, accuracy {:.2f} % over {} tokens\n", result.loss,
             format_perplexity(result.perplexity()), 100 * result.accuracy, result.targets);
  say("{}: {:.0f} tokens/s", format_duration(seconds), static_cast<double>(result.tokens) / seconds);
}

void eval_language_model(const EvalArguments& arguments, const TrainedModel& model) {
  const int64_t max_length = length_of(arguments, model);
  std::shared_ptr<const TokenStream> stream;
  const CorpusPart part = prepare_evaluation(arguments.data, model.job.data, *model.tokenizer, max_length, stream);
  const int64_t rows = evaluation_rows(model, max_length);
  Evaluator evaluator(model.decoder(), model.store, {rows, rows, max_length}, {}, backend_of(model.store.device()));
  Ledger ledger;
  const EvaluationResult result = evaluator.evaluate(*text_sequences(stream, part.chunks), ledger);
  print_loss(arguments, model, result, ledger.totals().seconds());
}

// The loss of guessing masked tokens, masked as in training.
void eval_masked(const EvalArguments& arguments, const TrainedModel& model) {
  const TrainingOptions& training = model.job.training;
  const int64_t max_length = length_of(arguments, model);
  std::vector<std::string> notes;
  ExampleSet examples = open_evaluation_examples(arguments.data, model.job, *model.tokenizer, {}, notes);
  for (const std::string& note : notes) say("{}", note);
  check_room_for_text(examples, max_length);
  if (!examples.has_pairs()) examples = examples.in_pieces(max_length);
  const Masker masker = masker_of(model.job, *model.tokenizer);
  const MaskedSequences sequences(std::move(examples), max_length, masker, training.mlm_probability);
  const RowPicking picking = masked_picking(masker);
  Evaluator evaluator(*model.model, model.store, picking.capacity(evaluation_rows(model, max_length), max_length),
                      picking, backend_of(model.store.device()));
  Ledger ledger;
  const EvaluationResult result = evaluator.evaluate(sequences, ledger);
  print_loss(arguments, model, result, ledger.totals().seconds());
}

// Accuracy with its interval, and all that a confusion matrix says.
void eval_classifier(const EvalArguments& arguments, const TrainedModel& model) {
  require_classifier(model);
  const int64_t max_length = length_of(arguments, model);
  std::vector<std::string> notes;
  ExampleSet examples = open_evaluation_examples(arguments.data, model.job, *model.tokenizer, model.labels, notes);
  for (const std::string& note : notes) say("{}", note);
  check_room_for_text(examples, max_length);
  const ExampleSequences sequences(std::move(examples), max_length);
  const RowPicking picking = first_row_picking(1);
  Evaluator evaluator(*model.model, model.store, picking.capacity(evaluation_rows(model, max_length), max_length),
                      picking, backend_of(model.store.device()));
  Ledger ledger;
  const EvaluationResult result = evaluator.evaluate(sequences, ledger);
  const double seconds = ledger.totals().seconds();
  say("{}, computed in {}", model.source, precision_of(model));
  if (arguments.json) {
    auto json = nlohmann::ordered_json::parse(scores_json(*result.classes, model.labels.names()));
    json["loss"] = result.loss;
    json["tokens"] = result.tokens;
    json["seconds"] = seconds;
    json["checkpoint"] = model.source;
    json["precision"] = precision_of(model);
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  const auto [low, high] = result.classes->accuracy_interval();
  fmt::print("{}\naccuracy {:.2f} % (95 %: {:.2f} to {:.2f}), F1 {:.2f} %, loss {:.4f} over {} examples\n",
             scores_text(*result.classes, model.labels.names()), 100 * result.accuracy, 100 * low, 100 * high,
             100 * result.classes->macro().f1, result.loss, result.targets);
  say("{}: {:.1f} examples/s, {:.0f} tokens/s", format_duration(seconds), static_cast<double>(result.targets) / seconds,
      static_cast<double>(result.tokens) / seconds);
}

// The columns may have other names here than in the training data.
void choose_columns(const EvalArguments& arguments, Job& job) {
  const auto choose = [&](const std::string& given, const char* option, bool has_it, std::string& column) {
    if (given.empty()) return;
    if (!has_it)
      user_error("{} {}: {} was trained without such a column; remove the option", option, given, arguments.model);
    column = given;
  };
  const bool classify = job.task == "classify";
  choose(arguments.text_field, "--text-field", true, job.data.text_field);
  choose(arguments.label_field, "--label-field", classify, job.data.label_field);
  choose(arguments.pair_field, "--pair-field", classify && !job.data.pair_field.empty(), job.data.pair_field);
}

void run_eval(const EvalArguments& arguments) {
  const auto model = open_trained_model(arguments.model, arguments.tokenizer, !arguments.fp32, arguments.device);
  choose_columns(arguments, model->job);
  if (model->job.task == "classify") {
    eval_classifier(arguments, *model);
  } else if (model->job.task == "mlm") {
    eval_masked(arguments, *model);
  } else {
    eval_language_model(arguments, *model);
  }
}

}  // namespace

void add_eval_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "Evaluate a trained model on text, or a classifier on a table");
  auto arguments = std::make_shared<EvalArguments>();
  command->add_option("run", arguments->model, "Run directory, checkpoint, Hugging Face folder, .gguf or llama2.c file")
      ->required();
  command->add_option("--data", arguments->data, "Text, or a table with labels: files, folders or globs")->required();
  command->add_option("--text-field", arguments->text_field,
                      "Column of the text in a table or JSON lines (default: as in training)");
  command->add_option("--label-field", arguments->label_field, "Column of the label (default: as in training)");
  command->add_option("--pair-field", arguments->pair_field, "Column of the second text (default: as in training)");
  command->add_option("--max-length", arguments->max_length, "Maximum tokens per sequence (default: as in training)")
      ->check(at_least(1));
  command->add_option("--tokenizer", arguments->tokenizer, "Tokenizer to use instead of the model's own");
  add_device_option(*command, arguments->device);
  command->add_flag("--json", arguments->json, "Print one JSON object on standard output");
  command->add_flag("--fp32", arguments->fp32, "Compute in fp32 (default: the number format of the run)");
  command->footer(
      "Examples:\n"
      "  brisk eval runs/prototype --data held-out.txt --json\n"
      "  brisk eval runs/reviews --data test.csv --json");
  command->callback([arguments] { run_eval(*arguments); });
}

}  // namespace brisk
