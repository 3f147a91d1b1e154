#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/terminal.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/limits.h"
#include "data/chunk_sequences.h"
#include "train/evaluator.h"
#include "train/prepare.h"
#include "train/tables.h"
#include "train/trained_model.h"

namespace brisk {

namespace {

struct EvalArguments {
  std::string model, tokenizer;
  std::vector<std::string> data;
  int64_t max_length = 0;
  bool json = false, fp32 = false;
};

void run_eval(const EvalArguments& arguments) {
  const auto model = open_trained_model(arguments.model, arguments.tokenizer, !arguments.fp32);
  const int64_t longest = model->job.training.max_length;
  const int64_t max_length = arguments.max_length > 0 ? std::min(arguments.max_length, longest) : longest;
  std::shared_ptr<const TokenStream> stream;
  const CorpusPart part = prepare_evaluation(arguments.data, model->job.data, *model->tokenizer, max_length, stream);
  const int64_t rows = std::max<int64_t>(max_length, 2048);
  Evaluator evaluator(model->decoder(), model->store, {rows, rows, max_length}, {}, Backend::cpu);
  Ledger ledger;
  const EvaluationResult result = evaluator.evaluate(*text_sequences(stream, part.chunks), ledger);
  const double seconds = ledger.totals().seconds();
  const char* precision = model->store.compute_type() == DType::bf16 ? "bf16" : "fp32";
  say("{}, computed in {}", model->source, precision);
  if (arguments.json) {
    const nlohmann::ordered_json json = {{"loss", result.loss},         {"perplexity", result.perplexity()},
                                         {"accuracy", result.accuracy}, {"tokens", result.tokens},
                                         {"seconds", seconds},          {"checkpoint", model->source},
                                         {"precision", precision}};
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("loss {:.4f}, perplexity {}, accuracy {:.2f} % over {} tokens\n", result.loss,
             format_perplexity(result.perplexity()), 100 * result.accuracy, result.tokens);
  say("{}: {:.0f} tokens/s", format_duration(seconds), static_cast<double>(result.tokens) / seconds);
}

}  // namespace

void add_eval_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "Measure a trained model on text");
  auto arguments = std::make_shared<EvalArguments>();
  command->add_option("run", arguments->model, "Run directory, checkpoint, or llama2.c model file")->required();
  command->add_option("--data", arguments->data, "Text: files, folders or globs")->required();
  command->add_option("--max-length", arguments->max_length, "Tokens a sequence (default: as in training)")
      ->check(at_least(1));
  command->add_option("--tokenizer", arguments->tokenizer, "Tokenizer, when it is not the run's own");
  command->add_flag("--json", arguments->json, "One JSON object on standard output");
  command->add_flag("--fp32", arguments->fp32, "Compute in fp32 (default: in the number format of the run)");
  command->footer("Example:\n  brisk eval runs/prototype --data held-out.txt --json");
  command->callback([arguments] { run_eval(*arguments); });
}

}  // namespace brisk
