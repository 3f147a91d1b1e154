#include <brisk/model.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/limits.h"
#include "cli/messages.h"

namespace brisk {

namespace {

struct GenerateArguments {
  std::string model, tokenizer, prompt;
  GenerateOptions options;
  std::string device = "cpu";
};

void run_generate(Runtime& runtime, const GenerateArguments& arguments) {
  LoadedModel model(runtime, arguments.model, {.tokenizer = arguments.tokenizer, .device = arguments.device});
  say("{}", model.source());
  const bool stream = is_terminal(STDOUT_FILENO);
  if (stream) fmt::print("{}", arguments.prompt);
  const Generated result = model.generate(arguments.prompt, arguments.options, [&](std::string_view piece) {
    if (!stream) return;
    fmt::print("{}", piece);
    std::fflush(stdout);
  });
  fmt::print("{}\n", stream ? "" : result.text);
  say("{} in {}: {:.0f} tokens/s{}", plural(result.new_tokens, "token"), format_duration(result.seconds),
      static_cast<double>(result.new_tokens) / result.seconds, result.ended ? "; the model ended the document" : "");
}

}  // namespace

void add_generate_command(CLI::App& app, Runtime& runtime) {
  CLI::App* command = app.add_subcommand("generate", "Continue a text with a trained model");
  auto arguments = std::make_shared<GenerateArguments>();
  GenerateOptions& options = arguments->options;
  command->add_option("run", arguments->model, "Run directory, checkpoint, Hugging Face folder, .gguf or llama2.c file")
      ->required();
  command->add_option("--prompt", arguments->prompt, "Text to continue (default: start a new document)")
      ->type_name("PROMPT");
  command->add_option("--max-tokens", options.max_tokens, "Maximum number of new tokens")
      ->capture_default_str()
      ->check(at_least(1));
  command->add_option("--temperature", options.temperature, "Sampling temperature; 0 always takes the likeliest token")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_option("--top-k", options.top_k, "Sample from the k likeliest tokens only; 0 means all")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_option("--top-p", options.top_p, "Sample from the fewest tokens whose probabilities add up to p")
      ->capture_default_str()
      ->check(between(1e-6, 1));
  command
      ->add_option("--repetition-penalty", options.repetition_penalty,
                   "Values above 1 make tokens that are already in the text less likely")
      ->capture_default_str()
      ->check(between(0.01, 100));
  command->add_option("--seed", options.seed, "Random seed for sampling")->capture_default_str()->check(at_least(0));
  command->add_option("--tokenizer", arguments->tokenizer, "Tokenizer to use instead of the model's own");
  add_device_option(*command, arguments->device,
                    " (small models generate no faster on a GPU, which also takes longer to start)");
  command->footer(
      "Examples:\n"
      "  brisk generate runs/prototype --prompt \"In the beginning\" --max-tokens 200\n"
      "  brisk generate stories260K.bin --temperature 0");
  command->callback([&runtime, arguments] { run_generate(runtime, *arguments); });
}

}  // namespace brisk
