#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "cli/command.h"
#include "hub/gguf/gguf_model.h"
#include "hub/huggingface/decoder.h"
#include "hub/huggingface/encoder.h"
#include "infer/model_config.h"
#include "infer/trained_model.h"

namespace brisk {

namespace {

struct ExportArguments {
  std::string model, tokenizer, output, format, precision = "fp32";
};

void run_export(const ExportArguments& arguments) {
  const auto model = open_trained_model(arguments.model, arguments.tokenizer);
  const ModelOptions& options = model->job.model;
  if (arguments.format == "gguf") {
    if (options.is_encoder())
      user_error(
          "--format gguf: {} is an encoder, and brisk writes GGUF files for decoders only; use --format huggingface",
          arguments.model);
    const GgufType type = arguments.precision == "fp32"   ? GgufType::f32
                          : arguments.precision == "fp16" ? GgufType::f16
                                                          : GgufType::bf16;
    write_gguf(arguments.output, model->job.name, options, model->store, *model->tokenizer, type);
    fmt::print("{}: {} of {}\n", arguments.output, format_bytes(static_cast<double>(file_size(arguments.output))),
               model->source);
    return;
  }
  const SafetensorsType type = arguments.precision == "fp32"   ? SafetensorsType::f32
                               : arguments.precision == "fp16" ? SafetensorsType::f16
                                                               : SafetensorsType::bf16;
  if (options.is_encoder()) {
    using Head = HuggingFaceEncoderConfig::Head;
    const bool classifier = model->job.task == "classify";
    write_huggingface_encoder(
        arguments.output,
        {.model = options, .head = classifier ? Head::classifier : Head::masked_words, .labels = model->labels.names()},
        model->store, *model->tokenizer, type);
    fmt::print("{}: {} parameters of {}\n", arguments.output, format_count(static_cast<double>(model->store.count())),
               model->source);
    say("  {1}.from_pretrained(\"{0}\"), AutoTokenizer.from_pretrained(\"{0}\")", arguments.output,
        has_no_head(model->job) ? "AutoModel"
        : classifier            ? "AutoModelForSequenceClassification"
                                : "AutoModelForMaskedLM");
    return;
  }
  write_huggingface(arguments.output, options, model->store, *model->tokenizer, type);
  fmt::print("{}: {} parameters of {}\n", arguments.output, format_count(static_cast<double>(model->store.count())),
             model->source);
  say("  AutoModelForCausalLM.from_pretrained(\"{0}\"), AutoTokenizer.from_pretrained(\"{0}\")", arguments.output);
}

}  // namespace

void add_export_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "Write a trained model in another program's format");
  auto arguments = std::make_shared<ExportArguments>();
  command->add_option("run", arguments->model, "Run directory, checkpoint, or any model `brisk import` reads")
      ->required();
  command
      ->add_option("--format", arguments->format,
                   "huggingface (a folder for transformers) or gguf (a file for llama.cpp; Llama's shape only)")
      ->required()
      ->check(CLI::IsMember({"huggingface", "gguf"}));
  command->add_option("output,--output", arguments->output, "Folder (huggingface) or file (gguf) to write")->required();
  command->add_option("--precision", arguments->precision, "Number format of the written weights")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  command->add_option("--tokenizer", arguments->tokenizer, "Tokenizer to use instead of the model's own");
  command->footer(
      "Examples:\n"
      "  brisk export runs/prototype --format huggingface --output prototype-hf\n"
      "  brisk export runs/llama --format gguf --precision fp16 --output llama.gguf\n"
      "Adapters (training.lora_rank) are merged into the weights.");
  command->callback([arguments] { run_export(*arguments); });
}

}  // namespace brisk
