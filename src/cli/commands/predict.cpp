#include <brisk/model.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/limits.h"
#include "cli/messages.h"
#include "cli/nonfinite_option.h"

namespace brisk {

namespace {

struct PredictArguments {
  std::string model, tokenizer, text, pair, data, text_field, pair_field;
  int64_t max_length = 0, threads = 0;
  bool has_text = false, fp32 = false;
  std::string device = "auto";
  bool allow_nonfinite = false;
};

size_t read_standard_input(char* out, size_t size) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, out, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) throw UserError(fmt::format("standard input: cannot read it: {}", std::strerror(errno)));
  }
}

void print_predictions(const LoadedModel& model, std::span<const Prediction> predictions) {
  for (const Prediction& prediction : predictions) {
    nlohmann::ordered_json json;
    json["label"] = model.labels()[prediction.label];
    nlohmann::ordered_json::object_t shares;  // whose own [] compares a key with all before it
    for (size_t i = 0; i < prediction.probabilities.size(); ++i)
      shares.emplace_back(model.labels()[i], prediction.probabilities[i]);
    json["probabilities"] = std::move(shares);
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }
  std::fflush(stdout);
}

void run_predict(Runtime& runtime, const PredictArguments& arguments) {
  set_threads(runtime, arguments.threads);
  LoadedModel model(runtime, arguments.model,
                    {.tokenizer = arguments.tokenizer,
                     .device = arguments.device,
                     .as_trained = !arguments.fp32,
                     .allow_nonfinite = arguments.allow_nonfinite});
  say(runtime, "{}, computed in {}", model.source(), model.precision());
  if (arguments.has_text && arguments.pair.empty() && model.classifies_pairs())
    throw UserError(fmt::format("{} classifies pairs of texts; give the second text with --pair", arguments.model));
  if (arguments.has_text && arguments.text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw UserError(fmt::format("the text is empty; give one to classify (brisk predict {} \"...\")", arguments.model));
  if (!arguments.has_text && arguments.data.empty() && model.classifies_pairs())
    throw UserError(fmt::format("{} classifies pairs of texts; give --data, or a text and --pair", arguments.model));
  const PredictOptions options{
      .max_length = arguments.max_length, .text_field = arguments.text_field, .pair_field = arguments.pair_field};
  const auto print = [&](std::span<const Prediction> predictions) { print_predictions(model, predictions); };
  const auto start = std::chrono::steady_clock::now();
  PredictTotals totals;
  if (arguments.has_text) {
    totals = model.predict({{arguments.text, arguments.pair}}, print, options);
  } else if (arguments.data.empty()) {
    totals = model.predict_lines(read_standard_input, print, options);
  } else {
    totals = model.predict_file(arguments.data, print, options);
  }
  if (totals.cut > 0) {
    warn(runtime, "{} of {} text{} {} longer than {} tokens: only the beginning was read{}", totals.cut, totals.texts,
         totals.texts == 1 ? "" : "s", totals.cut == 1 ? "is" : "are", totals.max_length,
         arguments.max_length > 0 ? "" : " (--max-length reads more, if the model can)");
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  say(runtime, "{} text{} in {}: {:.1f} texts/s, {:.0f} tokens/s", totals.texts, totals.texts == 1 ? "" : "s",
      format_duration(seconds), static_cast<double>(totals.texts) / seconds,
      static_cast<double>(totals.tokens) / seconds);
}

}  // namespace

void add_predict_command(CLI::App& app, Runtime& runtime) {
  CLI::App* command = app.add_subcommand("predict", "Classify texts with a trained classifier");
  auto arguments = std::make_shared<PredictArguments>();
  command->add_option("run", arguments->model, "Run directory, checkpoint, or Hugging Face folder of a classifier")
      ->required();
  CLI::Option* text =
      command
          ->add_option("text", arguments->text,
                       "Text to classify (default: the lines of standard input, unless --data is given)")
          ->type_name("TEXT");
  command->add_option("--pair", arguments->pair, "Second text, for a classifier of pairs")
      ->type_name("TEXT")
      ->needs(text);
  command
      ->add_option(
          "--data", arguments->data,
          "Texts to classify: a table (.csv, .tsv, .jsonl) or a file with one text per line; also .gz and .zst")
      ->excludes(text);
  command->add_option("--text-field", arguments->text_field, "Column of the text (default: as in training)");
  command->add_option("--pair-field", arguments->pair_field, "Column of the second text (default: as in training)");
  command->add_option("--max-length", arguments->max_length, "Maximum tokens per text (default: as in training)")
      ->check(at_least(3));
  command->add_option("--tokenizer", arguments->tokenizer, "Tokenizer to use instead of the model's own");
  add_nonfinite_option(*command, arguments->allow_nonfinite);
  add_threads_option(*command, arguments->threads);
  add_device_option(*command, arguments->device);
  command->add_flag("--fp32", arguments->fp32, "Compute in fp32 (default: the number format of the run)");
  command->footer(
      "Examples:\n"
      "  brisk predict runs/reviews \"a fine film\"\n"
      "  brisk predict runs/reviews --data new.csv > answers.jsonl\n"
      "  cat lines.txt | brisk predict runs/reviews\n"
      "Answers are JSON lines with the label and all probabilities, in the order of the texts.");
  command->callback([&runtime, arguments, text] {
    arguments->has_text = text->count() > 0;
    run_predict(runtime, *arguments);
  });
}

}  // namespace brisk
