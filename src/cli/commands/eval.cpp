#include <brisk/model.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/details.h"
#include "cli/limits.h"
#include "cli/messages.h"
#include "cli/model_options.h"
#include "cli/translation_options.h"

namespace brisk {

namespace {

struct EvalArguments {
  ModelArguments model;
  EvaluateOptions options;
  std::vector<std::string> data, source;
  bool json = false, no_translations = false;
};

void print_evaluation_json(const LoadedModel& model, const Evaluation& evaluation) {
  nlohmann::ordered_json json = details_of(evaluation);
  json["tokens"] = !model.labels().empty() ? evaluation.tokens : evaluation.targets;
  for (const Metric& metric : evaluation.metrics) {
    json[metric.name] = metric.value;
    if (metric.has_interval()) json[metric.name + "_interval"] = {metric.low, metric.high};
  }
  json["max_length"] = evaluation.max_length;
  json["texts_cut"] = evaluation.cut;
  json["seconds"] = evaluation.seconds;
  json["checkpoint"] = model.source();
  json["precision"] = model.precision();
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void run_eval(Runtime& runtime, const EvalArguments& arguments) {
  LoadedModel model = open_model(runtime, arguments.model);
  if (arguments.source.empty() == arguments.data.empty()) {
    throw UserError(arguments.data.empty()
                        ? "name the data to evaluate on: --data PATH, or of a translator --source FILE --target FILE"
                        : "--source and --data: give one of them");
  }
  if (arguments.source.empty() != arguments.options.target.empty()) {
    throw UserError(arguments.source.empty() ? "--target needs --source: the texts that these are the translations of"
                                             : "--source needs --target: the translations of these texts");
  }
  const Evaluation evaluation =
      model.evaluate(arguments.source.empty() ? arguments.data : arguments.source, arguments.options);
  say(runtime, "{}, computed in {}, in sequences of at most {} tokens", model.source(), model.precision(),
      evaluation.max_length);
  if (evaluation.cut > 0 && !arguments.options.target.empty()) {
    warn(runtime, "{} pair{} {} longer than {} tokens on a side: only the beginning counts in the loss", evaluation.cut,
         evaluation.cut == 1 ? "" : "s", evaluation.cut == 1 ? "is" : "are", evaluation.max_length);
  } else if (evaluation.cut > 0) {
    // Of how many is known where each text is one target.
    const std::string of = model.labels().empty() ? "" : fmt::format(" of {}", evaluation.targets);
    warn(runtime, "{}{} text{} {} longer than {} tokens: only the beginning was read{}", evaluation.cut, of,
         (of.empty() ? evaluation.cut : evaluation.targets) == 1 ? "" : "s", evaluation.cut == 1 ? "is" : "are",
         evaluation.max_length, arguments.options.max_length > 0 ? "" : " (--max-length reads more, if the model can)");
  }
  if (arguments.json) return print_evaluation_json(model, evaluation);
  const bool classes = !model.labels().empty();
  if (!evaluation.details.empty()) fmt::print("{}\n", evaluation.details);
  fmt::print("{} over {} {}\n", metrics_text(evaluation.metrics, model.best_by()), evaluation.targets,
             evaluation.target_name);
  say(runtime, "{}: {:.0f} tokens/s{}", format_duration(evaluation.seconds),
      static_cast<double>(evaluation.tokens) / evaluation.seconds,
      classes ? fmt::format(", {:.1f} examples/s", static_cast<double>(evaluation.targets) / evaluation.seconds) : "");
}

}  // namespace

void add_eval_command(CLI::App& app, Runtime& runtime) {
  CLI::App* command = app.add_subcommand(
      "eval", "Evaluate a trained model on text, a classifier on a table, or a translator on texts and translations");
  auto arguments = std::make_shared<EvalArguments>();
  command
      ->add_option("run", arguments->model.path,
                   "Run directory, checkpoint, Hugging Face folder, .gguf or llama2.c file")
      ->required();
  command->add_option("--data", arguments->data,
                      "Text, a table with labels, or a table of images: files, folders or globs");
  command->add_option("--source", arguments->source, "Of a translator: files with a text on each line");
  command->add_option("--target", arguments->options.target, "Files with the translation of each line of --source");
  command->add_option("--source-field", arguments->options.source_field,
                      "Column of the text to translate (default: as in training)");
  command->add_option("--target-field", arguments->options.target_field,
                      "Column of its translation (default: as in training)");
  command->add_option("--text-field", arguments->options.text_field,
                      "Column of the text in a table or JSON lines (default: as in training)");
  command->add_option("--image-field", arguments->options.image_field,
                      "Column of the images in a table (default: as in training)");
  command->add_option("--label-field", arguments->options.label_field, "Column of the label (default: as in training)");
  command->add_option("--pair-field", arguments->options.pair_field,
                      "Column of the second text (default: as in training)");
  command
      ->add_option("--max-length", arguments->options.max_length,
                   "Maximum tokens per sequence (default: as in training)")
      ->check(at_least(1));
  add_translation_options(*command, arguments->options.translation);
  command
      ->add_option(
          "--tokenize", arguments->options.bleu_tokenizer,
          "Words of BLEU: of western languages (13a), at all of Unicode's punctuation (intl), each Chinese character (zh), "
          "each character, or at spaces (none)")
      ->default_str("13a")
      ->check(CLI::IsMember({"13a", "intl", "zh", "char", "none"}));
  command->add_flag("--no-translations", arguments->no_translations,
                    "Measure the loss alone, not the scores of texts that are written");
  add_model_options(*command, arguments->model);
  command->add_flag("--json", arguments->json, "Print one JSON object on standard output");
  command->footer(
      "Examples:\n"
      "  brisk eval runs/prototype --data held-out.txt --json\n"
      "  brisk eval runs/reviews --data test.csv --json\n"
      "  brisk eval runs/receipts --data test-lines.tsv --beam 4\n"
      "  brisk eval runs/translate --source test.en --target test.de --json");
  command->callback([&runtime, arguments] {
    arguments->options.translate = !arguments->no_translations;
    run_eval(runtime, *arguments);
  });
}

}  // namespace brisk
