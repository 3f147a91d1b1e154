#include "infer/open/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/terminal/terminal.h"
#include "cli/command.h"
#include "cli/nonfinite_option.h"
#include "job/job_conditions.h"
#include "train/task/task.h"

namespace brisk {

namespace {

struct ImportArguments {
  std::string model, tokenizer, output;
  bool allow_nonfinite = false;
};

void run_import(const ImportArguments& arguments) {
  const ImportResult result = import_model(arguments.model, arguments.tokenizer, arguments.output,
                                           arguments.allow_nonfinite ? NonFinite::allow : NonFinite::refuse);
  fmt::print("{}: {} parameters from the {} {}\n", arguments.output,
             format_count(static_cast<double>(result.parameters)), result.kind, arguments.model);
  const std::string from = fmt::format("\"{}\"", arguments.output);  // to be copied: never cut
  if (!result.has_head) {
    std::vector<std::string> tasks;
    for (const TaskTraits& task : all_tasks()) {
      if (task.trains_encoder) tasks.push_back(fmt::format("\"{}\"", task.name));
    }
    say("  the model has no head, so it cannot predict or be evaluated yet; train one with a job that has {{\"task\": {}, "
        "\"model\": {{\"from\": {}}}}}",
        fmt::join(tasks, " or "), from);
    return;
  }
  const std::unique_ptr<Task> task = make_task(result.job);
  say("  {}", task->usage(arguments.output));
  if (task->try_out(arguments.output, "")) say("  to train from it: {{\"model\": {{\"from\": {}}}}} in a job", from);
}

}  // namespace

void add_import_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "Convert another program's model to a run directory");
  auto arguments = std::make_shared<ImportArguments>();
  command
      ->add_option("model", arguments->model,
                   "Hugging Face folder (GPT-2, Llama, Mistral, BERT, DistilBERT, RoBERTa), .gguf file (Llama), or "
                   "llama2.c model file")
      ->required();
  command->add_option("--output", arguments->output, "Run directory to write")->required();
  command->add_option("--tokenizer", arguments->tokenizer,
                      "Tokenizer to use instead of the one that comes with the model");
  add_nonfinite_option(*command, arguments->allow_nonfinite);
  command->footer(
      "Examples:\n"
      "  brisk import gpt2 --output runs/gpt2\n"
      "  brisk import stories260K.bin --output runs/stories");
  command->callback([arguments] { run_import(*arguments); });
}

}  // namespace brisk
