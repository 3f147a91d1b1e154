#include <brisk/model.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/messages.h"
#include "cli/nonfinite_option.h"

namespace brisk {

namespace {

struct ExportArguments {
  std::string model, tokenizer, output, format, precision = "fp32";
  bool allow_nonfinite = false;
};

void run_export(Runtime& runtime, const ExportArguments& arguments) {
  LoadedModel model(runtime, arguments.model,
                    {.tokenizer = arguments.tokenizer, .allow_nonfinite = arguments.allow_nonfinite});
  const WeightFormat weights = arguments.precision == "fp32"   ? WeightFormat::fp32
                               : arguments.precision == "fp16" ? WeightFormat::fp16
                                                               : WeightFormat::bf16;
  if (arguments.format == "gguf") {
    model.write(arguments.output, ModelFormat::gguf, weights);
    fmt::print("{}: {} of {}\n", arguments.output,
               format_bytes(static_cast<double>(std::filesystem::file_size(arguments.output))), model.source());
    return;
  }
  const std::string opened_by = model.write(arguments.output, ModelFormat::huggingface, weights);
  fmt::print("{}: {} parameters of {}\n", arguments.output, format_count(static_cast<double>(model.parameters())),
             model.source());
  std::string readers;
  for (const auto& [file, reader] : {std::pair{"tokenizer_config.json", "AutoTokenizer"},
                                     std::pair{"preprocessor_config.json", "AutoImageProcessor"}}) {
    if (std::filesystem::exists(std::filesystem::path(arguments.output) / file))
      readers += fmt::format(", {}.from_pretrained(\"{}\")", reader, arguments.output);
  }
  say(runtime, "  {}.from_pretrained(\"{}\"){}", opened_by, arguments.output, readers);
}

}  // namespace

void add_export_command(CLI::App& app, Runtime& runtime) {
  CLI::App* command = app.add_subcommand("export", "Write a trained model in another program's format");
  auto arguments = std::make_shared<ExportArguments>();
  command->add_option("run", arguments->model, "Run directory, checkpoint, or any model `brisk import` reads")
      ->required();
  command
      ->add_option("--format", arguments->format,
                   "huggingface (a folder for transformers) or gguf (a file for llama.cpp; Llama's shape only)")
      ->required()
      ->check(CLI::IsMember({"huggingface", "gguf"}));
  command->add_option("--output", arguments->output, "Folder (huggingface) or file (gguf) to write")->required();
  command->add_option("--precision", arguments->precision, "Number format of the written weights")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  command->add_option("--tokenizer", arguments->tokenizer, "Tokenizer to use instead of the model's own");
  add_nonfinite_option(*command, arguments->allow_nonfinite);
  command->footer(
      "Examples:\n"
      "  brisk export runs/prototype --format huggingface --output prototype-hf\n"
      "  brisk export runs/llama --format gguf --precision fp16 --output llama.gguf\n"
      "Adapters (training.lora_rank) are merged into the weights.");
  command->callback([&runtime, arguments] { run_export(runtime, *arguments); });
}

}  // namespace brisk
