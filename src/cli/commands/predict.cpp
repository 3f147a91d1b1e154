#include <brisk/model.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>

#include "cli/command.h"
#include "cli/image_answers.h"
#include "cli/limits.h"
#include "cli/messages.h"
#include "cli/model_options.h"

namespace brisk {

namespace {

struct PredictArguments {
  ModelArguments model;
  std::string text, pair, data, text_field, pair_field, images;
  int64_t max_length = 0;
  bool has_text = false;
  ImageArguments of_images;
};

size_t read_standard_input(char* out, size_t size) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, out, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) throw UserError(fmt::format("standard input: cannot read it: {}", std::strerror(errno)));
  }
}

void run_predict(Runtime& runtime, const PredictArguments& arguments) {
  LoadedModel model = open_model(runtime, arguments.model);
  say(runtime, "{}, computed in {}", model.source(), model.precision());
  if (!arguments.images.empty()) return predict_images(runtime, model, arguments.images, arguments.of_images);
  if (model.reads_images())
    throw UserError(
        fmt::format("{} reads images: brisk predict {} --images FOLDER", arguments.model.path, arguments.model.path));
  if (arguments.has_text && arguments.pair.empty() && model.classifies_pairs())
    throw UserError(
        fmt::format("{} classifies pairs of texts; give the second text with --pair", arguments.model.path));
  if (arguments.has_text && arguments.text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw UserError(
        fmt::format("the text is empty; give one to classify (brisk predict {} \"...\")", arguments.model.path));
  if (!arguments.has_text && arguments.data.empty() && model.classifies_pairs())
    throw UserError(
        fmt::format("{} classifies pairs of texts; give --data, or a text and --pair", arguments.model.path));
  const PredictOptions options{
      .max_length = arguments.max_length, .text_field = arguments.text_field, .pair_field = arguments.pair_field};
  const auto print = [&](std::span<const Prediction> predictions) { print_predictions(model, predictions, {}); };
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
  CLI::App* command =
      app.add_subcommand("predict", "Classify texts or images, or write the texts of images, with a trained model");
  auto arguments = std::make_shared<PredictArguments>();
  command
      ->add_option("run", arguments->model.path,
                   "Run directory, checkpoint, or Hugging Face folder of a classifier, or of a model that reads images")
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
  add_model_options(*command, arguments->model);
  command
      ->add_option("--images", arguments->images,
                   "Images to read: a folder, a table (.csv, .tsv, .jsonl) or an image (PNG, JPEG, WebP, PPM, PGM)")
      ->excludes(text)
      ->excludes("--data");
  add_image_options(*command, arguments->of_images);
  command->footer(
      "Examples:\n"
      "  brisk predict runs/reviews \"a fine film\"\n"
      "  brisk predict runs/reviews --data new.csv > answers.jsonl\n"
      "  cat lines.txt | brisk predict runs/reviews\n"
      "  brisk predict runs/pages --images scans --output translated --beam 4\n"
      "  brisk predict runs/receipts --images line.png\n"
      "Answers about texts are JSON lines with the label and all probabilities, in the order of the texts.");
  command->callback([&runtime, arguments, text] {
    arguments->has_text = text->count() > 0;
    run_predict(runtime, *arguments);
  });
}

}  // namespace brisk
