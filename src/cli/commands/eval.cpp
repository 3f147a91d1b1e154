#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/metrics.h"
#include "base/terminal/terminal.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/limits.h"
#include "infer/precision.h"
#include "infer/trained_model.h"
#include "job/job_conditions.h"
#include "train/task/evaluate.h"
#include "train/task/task.h"

namespace brisk {

namespace {

struct EvalArguments {
  std::string model, tokenizer, text_field, label_field, pair_field;
  std::vector<std::string> data;
  int64_t max_length = 0;
  bool json = false, fp32 = false;
  std::string device = "auto";
};

void print_result(const EvalArguments& arguments, const TrainedModel& model, const TaskEvaluation& evaluation) {
  const EvaluationResult& result = evaluation.result;
  const std::string precision = precision_name(model.store.compute_type(), ProductFormat::own);
  for (const std::string& note : evaluation.notes) say("{}", note);
  say("{}, computed in {}", model.source, precision);
  if (arguments.json) {
    using Json = nlohmann::ordered_json;
    Json json = evaluation.details.json.empty() ? Json::object() : Json::parse(evaluation.details.json);
    json["tokens"] = result.classes ? result.tokens : result.targets;
    for (const Metric& metric : result.metrics) {
      json[metric.name] = metric.value;
      if (metric.has_interval()) json[metric.name + "_interval"] = {metric.low, metric.high};
    }
    json["seconds"] = evaluation.seconds;
    json["checkpoint"] = model.source;
    json["precision"] = precision;
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  if (!evaluation.details.text.empty()) fmt::print("{}\n", evaluation.details.text);
  fmt::print("{} over {} {}\n", metrics_text(result.metrics, model.job.training.best_by), result.targets,
             traits_of_task(model.job.task).targets);
  say("{}: {:.0f} tokens/s{}", format_duration(evaluation.seconds),
      static_cast<double>(result.tokens) / evaluation.seconds,
      result.classes ? fmt::format(", {:.1f} examples/s", static_cast<double>(result.targets) / evaluation.seconds)
                     : "");
}

// The columns may have other names here than in the training data.
void choose_columns(const EvalArguments& arguments, Job& job) {
  const auto choose = [&](const std::string& given, const char* option, bool has_it, std::string& column) {
    if (given.empty()) return;
    if (!has_it)
      user_error("{} {}: {} was trained without such a column; remove the option", option, given, arguments.model);
    column = given;
  };
  const bool labelled = traits_of_task(job.task).has_labels;
  choose(arguments.text_field, "--text-field", true, job.data.text_field);
  choose(arguments.label_field, "--label-field", labelled, job.data.label_field);
  choose(arguments.pair_field, "--pair-field", labelled && !job.data.pair_field.empty(), job.data.pair_field);
}

void run_eval(const EvalArguments& arguments) {
  const auto model = open_trained_model(arguments.model, arguments.tokenizer, !arguments.fp32, arguments.device);
  choose_columns(arguments, model->job);
  check_max_length(arguments.max_length, std::max(model->job.training.max_length, model->job.model.context));
  print_result(arguments, *model, evaluate(*make_task(model->job.task), *model, arguments.data, arguments.max_length));
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
