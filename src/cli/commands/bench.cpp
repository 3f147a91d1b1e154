#include "bench/bench.h"

#include <brisk/ranks.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/bench_classify.h"
#include "bench/bench_mu.h"
#include "bench/bench_translate.h"
#include "cli/as_ranks.h"
#include "cli/bench_image_command.h"
#include "cli/bench_output.h"
#include "cli/command.h"
#include "cli/limits.h"
#include "train/engine/process_group.h"

namespace brisk {

namespace {

struct BenchArguments {
  BenchOptions options;
  bool json = false;
};

// What every benchmark of a language model tells besides.
void add_text_figures(nlohmann::ordered_json& json, const TextTrainingFigures& figures) {
  json["flop_per_token"] = figures.flop_per_token;
  json["planned_memory_bytes"] = figures.planned_memory_bytes();
  json["state_bytes"] = figures.state_bytes;
  json["activation_bytes"] = figures.activation_bytes;
  json["workspace_bytes"] = figures.workspace_bytes;
  json["mean_tokens_per_second"] = figures.mean_tokens_per_second;
}

std::string planned_memory(const TextTrainingFigures& figures) {
  return fmt::format(" ({} planned)", format_bytes(static_cast<double>(figures.planned_memory_bytes())));
}

struct ClassifyArguments {
  ClassifyBenchOptions options;
  bool json = false;
};

void run_classify(ClassifyArguments& arguments, Ranks& ranks) {
  arguments.options.processes = &ranks.group();
  const ClassifyBenchResult result = bench_classify(arguments.options);
  if (ranks.rank() > 0) return;
  if (arguments.json) {
    print_json({{"model", arguments.options.model},
                {"batch", arguments.options.batch},
                {"max_length", arguments.options.max_length},
                {"mean_length", result.mean_length},
                {"rows_per_second", result.rows_per_second}},
               result);
  } else {
    print_text(arguments.options.model, fmt::format("{:.1f} rows/s, ", result.rows_per_second), result);
  }
}

void add_classify(CLI::App& bench, Runtime& runtime) {
  CLI::App* command = bench.add_subcommand(
      "classify", "Time fine-tuning of a classifier of a known shape on the texts of a table, with random weights");
  auto arguments = std::make_shared<ClassifyArguments>();
  ClassifyBenchOptions& options = arguments->options;
  command->add_option("--model", options.model, "Shape of the model: distilbert, bert or minilm")
      ->capture_default_str()
      ->check(CLI::IsMember({"distilbert", "bert", "minilm"}));
  command->add_option("--data", options.data, "A table with texts and labels (.csv, .tsv, .jsonl)")
      ->type_name("FILE")
      ->required();
  command->add_option("--text-field", options.text_field, "Column of the text (default: detected)");
  command->add_option("--label-field", options.label_field, "Column of the label (default: detected)");
  command->add_option("--max-length", options.max_length, "Maximum tokens per text; longer ones are truncated")
      ->capture_default_str()
      ->check(between(3, 512));
  command->add_option("--batch", options.batch, "Texts per optimizer step")
      ->capture_default_str()
      ->check(between(1, 1 << 16));
  command->add_option("--seconds", options.seconds, "How long to measure, in seconds; at least 20 steps")
      ->capture_default_str()
      ->check(above(0));
  command->add_option("--tokenizer", options.tokenizer,
                      "Tokenizer to use (default: a WordPiece vocabulary trained on the texts)");
  add_run_options(command, arguments);
  command->footer("Example:\n  brisk bench classify --model distilbert --data reviews.csv --max-length 128 --json");
  command->callback(
      [&runtime, arguments] { run_as_ranks(runtime, [&](Ranks& ranks) { run_classify(*arguments, ranks); }); });
}

struct TranslateArguments {
  TranslateBenchOptions options;
  bool json = false;
};

void run_translate(TranslateArguments& arguments, Ranks& ranks) {
  arguments.options.processes = &ranks.group();
  const TranslateBenchOptions& options = arguments.options;
  const TranslateBenchResult result = bench_translate(options);
  if (ranks.rank() > 0) return;
  if (arguments.json) {
    print_json({{"model", "encoder_decoder"},
                {"width", options.width},
                {"layers", options.layers},
                {"batch", options.batch},
                {"max_length", options.max_length},
                {"optimizer", options.optimizer},
                {"mean_source", result.mean_source},
                {"mean_target", result.mean_target},
                {"pairs_per_second", result.pairs_per_second}},
               result);
  } else {
    print_text(fmt::format("{}+{} layers, {} wide", options.layers, options.layers, options.width),
               fmt::format("{:.1f} pairs/s, ", result.pairs_per_second), result);
  }
}

void add_translate(CLI::App& bench, Runtime& runtime) {
  CLI::App* command = bench.add_subcommand(
      "translate", "Time training of an encoder-decoder on texts and their translations, with random weights");
  auto arguments = std::make_shared<TranslateArguments>();
  TranslateBenchOptions& options = arguments->options;
  command->add_option("--source", options.source, "Texts, one in a line")->type_name("FILE")->required();
  command->add_option("--target", options.target, "Their translations, one in a line")->type_name("FILE")->required();
  command->add_option("--width", options.width, "Width of the model, with heads of 64")
      ->capture_default_str()
      ->check(between(64, 65536));
  command->add_option("--layers", options.layers, "Number of layers of the encoder, and of the decoder")
      ->capture_default_str()
      ->check(between(1, 1000));
  command->add_option("--d-ff", options.d_ff, "Width inside the feed-forward blocks (default: 4 times the width)")
      ->check(between(1, 1 << 20));
  command->add_option("--vocabulary", options.vocabulary, "Size of the vocabulary that is trained on the texts")
      ->capture_default_str()
      ->check(between(300, 1 << 24));
  command->add_option("--tokenizer", options.tokenizer,
                      "Tokenizer to use for both texts (default: a byte-level BPE vocabulary trained on them)");
  command->add_option("--max-length", options.max_length, "Maximum tokens per text; longer pairs are left out")
      ->capture_default_str()
      ->check(between(3, 1 << 16));
  command->add_option("--batch", options.batch, "Pairs per optimizer step")
      ->capture_default_str()
      ->check(between(1, 1 << 16));
  command->add_option("--dropout", options.dropout, "Fraction of activations set to zero at random")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.99));
  command->add_option("--optimizer", options.optimizer, "Optimizer: adamw (as in bench/peers) or muon")
      ->capture_default_str()
      ->check(CLI::IsMember({"adamw", "muon"}));
  command->add_option("--seconds", options.seconds, "How long to measure, in seconds; at least 20 steps")
      ->capture_default_str()
      ->check(above(0));
  add_run_options(command, arguments);
  command->footer("Example:\n  brisk bench translate --source train.en --target train.de --json");
  command->callback(
      [&runtime, arguments] { run_as_ranks(runtime, [&](Ranks& ranks) { run_translate(*arguments, ranks); }); });
}

// "small", or if any dimension was given: "512 wide, 2 layers, 8 heads, a vocabulary of 10000".
std::string name_of(const BenchOptions& options, const DecoderConfig& model) {
  if (options.width + options.layers + options.vocabulary + options.heads == 0) return options.shape;
  return fmt::format("{} wide, {} layers, {} heads, a vocabulary of {}", model.d_model, model.num_layers,
                     model.num_heads, model.vocab_size);
}

void run_bench(BenchArguments& arguments, Ranks& ranks) {
  arguments.options.processes = &ranks.group();
  const BenchResult result = bench_language_model(arguments.options);
  if (ranks.rank() > 0) return;
  const DecoderConfig& model = result.model;
  if (arguments.json) {
    nlohmann::ordered_json json = {{"shape", arguments.options.shape},
                                   {"width", model.d_model},
                                   {"layers", model.num_layers},
                                   {"vocabulary", model.vocab_size},
                                   {"heads", model.num_heads},
                                   {"max_length", model.max_length},
                                   {"batch", result.batch},
                                   {"threads", result.threads},
                                   {"optimizer", arguments.options.optimizer}};
    add_text_figures(json, result);
    print_json(std::move(json), result);
  } else {
    print_text(name_of(arguments.options, model), "", result, planned_memory(result));
  }
}

struct MuArguments {
  MuBenchOptions options;
  bool json = false;
};

void run_mu(MuArguments& arguments, Ranks& ranks) {
  arguments.options.processes = &ranks.group();
  const MuBenchOptions& options = arguments.options;
  const TextTrainingFigures figures = bench_mu(options);
  if (ranks.rank() > 0) return;
  if (arguments.json) {
    nlohmann::ordered_json json = {{"model", "mu"},
                                   {"reference", options.reference},
                                   {"layers", options.layers},
                                   {"vocabulary", options.vocabulary},
                                   {"max_length", options.max_length},
                                   {"batch", figures.batch},
                                   {"dropout", options.dropout},
                                   {"threads", figures.threads}};
    add_text_figures(json, figures);
    print_json(std::move(json), figures);
  } else {
    print_text(fmt::format("mu, {} layers, a vocabulary of {}", options.layers, options.vocabulary), "", figures,
               planned_memory(figures));
  }
}

void add_mu(CLI::App& bench, Runtime& runtime) {
  CLI::App* command = bench.add_subcommand("mu", "Time training of MU by its recipe, with the real training step");
  auto arguments = std::make_shared<MuArguments>();
  MuBenchOptions& options = arguments->options;
  command->add_option("--layers", options.layers, "Number of layers")->capture_default_str()->check(between(1, 1000));
  command->add_option("--vocabulary", options.vocabulary, "Size of the vocabulary")
      ->capture_default_str()
      ->check(between(2, 1 << 24));
  command->add_option("--batch", options.batch, "Sequences per optimizer step")
      ->capture_default_str()
      ->check(between(1, 1 << 20));
  command->add_option("--max-length", options.max_length, "Tokens per sequence")
      ->capture_default_str()
      ->check(between(2, 1 << 20));
  command->add_option("--dropout", options.dropout, "Fraction of activations set to zero at random")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.99));
  command->add_flag("--reference", options.reference, "MU as it was first written: without a causal mask");
  command->add_option("--seconds", options.seconds, "How long to measure, in seconds")
      ->capture_default_str()
      ->check(above(0));
  add_run_options(command, arguments);
  command->footer("Example:\n  brisk bench mu --layers 6 --json");
  command->callback([&runtime, arguments] { run_as_ranks(runtime, [&](Ranks& ranks) { run_mu(*arguments, ranks); }); });
}

}  // namespace

void add_bench_command(CLI::App& app, Runtime& runtime) {
  CLI::App* command = app.add_subcommand("bench", "Measure training speed");
  command->require_subcommand(1);
  command->footer(
      "A step's batch is that of all ranks together, where there are several.\n\n"
      "Examples:\n"
      "  brisk bench lm --shape small --json\n"
      "  brisk launch -n 2 bench lm --shape small --json");
  CLI::App* lm = command->add_subcommand(
      "lm", "Time training of a decoder language model, of a known shape or your own, with the real training step");
  auto arguments = std::make_shared<BenchArguments>();
  BenchOptions& options = arguments->options;
  lm->add_option("--shape", options.shape, "Shape of the model: small, large, production or gpt2")
      ->type_name("NAME")
      ->capture_default_str();
  lm->add_option("--width", options.width, "Width of the model (default: that of the shape)")->check(between(1, 65536));
  lm->add_option("--layers", options.layers, "Number of layers (default: that of the shape)")->check(between(1, 1000));
  lm->add_option("--vocabulary", options.vocabulary, "Size of the vocabulary (default: that of the shape)")
      ->check(between(2, 1 << 24));
  lm->add_option("--heads", options.heads,
                 "Number of attention heads (default: that of the shape; with --width, width / 64)")
      ->check(between(1, 4096));
  lm->add_option("--batch", options.batch, "Sequences per optimizer step (default: that of the shape)")
      ->check(between(1, 1 << 20));
  lm->add_option("--max-length", options.max_length, "Tokens per sequence (default: that of the shape)")
      ->check(between(2, 1 << 20));
  lm->add_option("--optimizer", options.optimizer,
                 "Optimizer: adamw (as in the PyTorch comparison, bench/peers) or muon, the default of `brisk train`")
      ->capture_default_str()
      ->check(CLI::IsMember({"adamw", "muon"}));
  lm->add_option("--seconds", options.seconds, "How long to measure, in seconds")
      ->capture_default_str()
      ->check(above(0));
  add_run_options(lm, arguments);
  lm->footer(
      "Examples:\n"
      "  brisk bench lm --shape small --precision fp32 --json\n"
      "  brisk bench lm --width 512 --layers 4 --vocabulary 16000 --batch 16 --max-length 256");
  lm->callback([&runtime, arguments] { run_as_ranks(runtime, [&](Ranks& ranks) { run_bench(*arguments, ranks); }); });
  add_classify(*command, runtime);
  add_mu(*command, runtime);
  add_translate(*command, runtime);
  add_bench_image(*command, runtime);
}

}  // namespace brisk
