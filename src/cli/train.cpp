#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/job.h"
#include "base/terminal.h"
#include "cli/command.h"
#include "train/model_source.h"
#include "train/trainer.h"

namespace brisk {

namespace {

struct TrainArguments {
  std::string job_path, output;
  std::vector<std::string> data, settings;
  bool resume = false;
  int64_t sample_tokens = 0;
  std::string sample_prompt;
};

int run_train(const TrainArguments& arguments) {
  std::vector<std::string> notes;
  Job job = load_job(arguments.job_path, arguments.settings, notes);
  if (!arguments.data.empty()) job.data.train = arguments.data;
  if (!arguments.output.empty()) job.output = arguments.output;
  for (const std::string& note : notes) say("{}", note);
  for (const std::string& line : take_model_from_source(job, arguments.resume)) say("{}", line);
  for (const std::string& line : resolve_defaults(job)) say("{}", line);
  const TrainOutcome outcome = train(
      job,
      {.resume = arguments.resume, .sample_prompt = arguments.sample_prompt, .sample_tokens = arguments.sample_tokens});
  if (outcome.interrupted) {
    // The run's own job file holds what --data and --set said, too.
    say("interrupted: everything is saved in {}; go on with\n  brisk train {}/job.json --output {} --resume",
        outcome.run_path, outcome.run_path, outcome.run_path);
    return kExitInterrupted;
  }
  if (const auto& step = outcome.summary.last_step) {
    const auto& evaluation = outcome.summary.best_evaluation;
    fmt::print("{}: step {}, loss {:.4f}{}\n", outcome.run_path, step->step, step->loss,
               evaluation
                   ? fmt::format(", best validation loss {:.4f} (perplexity {:.2f}) at step {}",
                                 evaluation->validation_loss, evaluation->validation_perplexity, evaluation->step)
                   : "");
  }
  say("done: {}\n  brisk generate {} --prompt \"...\"", outcome.run_path, outcome.run_path);
  return kExitDone;
}

}  // namespace

void add_train_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("train", "Train a model as a job file says");
  auto arguments = std::make_shared<TrainArguments>();
  command->add_option("job", arguments->job_path, "Job file (JSON; see `brisk job reference`)")->required();
  command->add_option("--data", arguments->data, "Text to train on: files, folders or globs; in place of data.train");
  command
      ->add_option("--set", arguments->settings,
                   "Set a key of the job: training.batch_size=64 (may be given several times)")
      ->allow_extra_args(false);  // one each, so that the job file may come after it
  command->add_option("--output", arguments->output, "Run directory (default: runs/<name of the job>)");
  command->add_flag("--resume", arguments->resume, "Go on from the run directory's last checkpoint");
  command
      ->add_option("--sample-tokens", arguments->sample_tokens, "After each epoch, print a sample of this many tokens")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--sample-prompt", arguments->sample_prompt, "What the samples begin with");
  command->footer(
      "Examples:\n"
      "  brisk train examples/prototype.json --data book.txt\n"
      "  brisk train job.json --set training.batch_size=64 --set training.precision=fp32 --output runs/b64\n"
      "  brisk train job.json --output runs/b64 --resume");
  command->callback([arguments, &exit_code] { exit_code = run_train(*arguments); });
}

}  // namespace brisk
