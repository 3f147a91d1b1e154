#include <brisk/model.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/limits.h"
#include "cli/messages.h"
#include "cli/nonfinite_option.h"
#include "cli/prompt_file.h"

namespace brisk {

namespace {

struct GenerateArguments {
  std::string model, tokenizer, prompt, prompt_file;
  GenerateOptions options;
  int64_t samples = 1, threads = 0;
  bool json = false;
  std::string device = "cpu";
  bool allow_nonfinite = false;
};

void tell_what_was_lost(Runtime& runtime, const Generated& result) {
  if (result.prompt_dropped > 0) {
    warn(runtime, "the prompt has {} tokens, and the model reads {} here: the first {} were left out",
         result.prompt_tokens, result.context, result.prompt_dropped);
  }
  if (result.restarts > 0) {
    say(runtime,
        "the text is longer than the {} tokens that the model reads here: {} time{} it went on from the last half of them "
        "alone",
        result.context, result.restarts, result.restarts == 1 ? "" : "s");
  }
}

void print_json(const Generated& result, const GenerateArguments& arguments, uint64_t seed) {
  const nlohmann::ordered_json json = {{"prompt", arguments.prompt},
                                       {"text", result.text},
                                       {"prompt_tokens", result.prompt_tokens},
                                       {"new_tokens", result.new_tokens},
                                       {"ended", result.ended                 ? "end of document"
                                                 : !result.stopped_at.empty() ? "stop"
                                                                              : "max tokens"},
                                       {"stopped_at", result.stopped_at},
                                       {"prompt_tokens_left_out", result.prompt_dropped},
                                       {"seed", seed},
                                       {"seconds", result.seconds}};
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  std::fflush(stdout);
}

void run_generate(Runtime& runtime, GenerateArguments& arguments) {
  if (!arguments.prompt_file.empty()) arguments.prompt = read_prompt_file(arguments.prompt_file);
  set_threads(runtime, arguments.threads);
  LoadedModel model(
      runtime, arguments.model,
      {.tokenizer = arguments.tokenizer, .device = arguments.device, .allow_nonfinite = arguments.allow_nonfinite});
  say(runtime, "{}", model.source());
  const bool stream = ::isatty(STDOUT_FILENO) == 1 && !arguments.json;
  for (int64_t i = 0; i < arguments.samples; ++i) {
    GenerateOptions options = arguments.options;
    options.seed += static_cast<uint64_t>(i);
    if (i > 0 && !arguments.json) fmt::print("----\n");
    ControlFilter filter;  // a model may draw what a terminal would obey; in a pipe its bytes stay as they are
    if (stream) fmt::print("{}", filter.next(arguments.prompt));
    const Generated result = model.generate(arguments.prompt, options, [&](std::string_view piece) {
      if (!stream) return;
      fmt::print("{}", filter.next(piece));
      std::fflush(stdout);
    });
    if (arguments.json) {
      print_json(result, arguments, options.seed);
    } else {
      fmt::print("{}\n", stream ? filter.rest() : result.text);
    }
    tell_what_was_lost(runtime, result);
    say(runtime, "{} token{} in {}: {:.0f} tokens/s{}", result.new_tokens, result.new_tokens == 1 ? "" : "s",
        format_duration(result.seconds), static_cast<double>(result.new_tokens) / result.seconds,
        result.ended                 ? "; the model ended the document (--ignore-eos goes on)"
        : !result.stopped_at.empty() ? "; a stop string ended it"
                                     : "");
  }
}

}  // namespace

void add_generate_command(CLI::App& app, Runtime& runtime) {
  CLI::App* command = app.add_subcommand("generate", "Continue a text with a trained model");
  auto arguments = std::make_shared<GenerateArguments>();
  GenerateOptions& options = arguments->options;
  command->add_option("run", arguments->model, "Run directory, checkpoint, Hugging Face folder, .gguf or llama2.c file")
      ->required();
  CLI::Option* prompt =
      command->add_option("--prompt", arguments->prompt, "Text to continue (default: start a new document)")
          ->type_name("PROMPT");
  command
      ->add_option("--prompt-file", arguments->prompt_file,
                   "File with the text to continue, without the end of its last line; - is standard input")
      ->type_name("FILE")
      ->excludes(prompt);
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
      ->add_option("--min-p", options.min_p,
                   "Sample from tokens that are at least p times as likely as the likeliest; 0 means all")
      ->capture_default_str()
      ->check(between(0, 1));
  command
      ->add_option("--repetition-penalty", options.repetition_penalty,
                   "Values above 1 make tokens that are already in the text less likely")
      ->capture_default_str()
      ->check(between(0.01, 100));
  command->add_flag("--ignore-eos", options.ignore_end, "Never end the document: go on until --max-tokens or --stop");
  command->add_option("--stop", options.stop, "End before this text, as soon as it is generated (may be repeated)")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      ->add_option("--num-samples", arguments->samples,
                   "Number of texts to generate, with the seeds from --seed on; separated by a line of ----")
      ->capture_default_str()
      ->check(at_least(1));
  command->add_option("--seed", options.seed, "Random seed for sampling")->capture_default_str()->check(at_least(0));
  command->add_flag("--json", arguments->json, "Print one JSON object for each text on standard output");
  add_threads_option(*command, arguments->threads);
  command->add_option("--tokenizer", arguments->tokenizer, "Tokenizer to use instead of the model's own");
  add_nonfinite_option(*command, arguments->allow_nonfinite);
  add_device_option(*command, arguments->device,
                    " (small models generate no faster on a GPU, which also takes longer to start)");
  command->footer(
      "Examples:\n"
      "  brisk generate runs/prototype --prompt \"In the beginning\" --max-tokens 200\n"
      "  brisk generate runs/prototype --prompt-file chapter.txt --ignore-eos --stop \"THE END\" --num-samples 3 --json\n"
      "  brisk generate stories260K.bin --temperature 0");
  command->callback([&runtime, arguments] { run_generate(runtime, *arguments); });
}

}  // namespace brisk
