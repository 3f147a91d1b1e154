#include <brisk/job.h>
#include <brisk/ranks.h>
#include <brisk/train.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/interrupt.h"
#include "cli/job_argument.h"
#include "cli/limits.h"
#include "cli/messages.h"
#include "cli/shell_word.h"
#include "cli/smoke_test/smoke_test.h"

namespace brisk {

namespace {

struct TrainArguments {
  std::string job_path, output, stop, device;
  std::vector<std::string> data, target, settings;
  bool resume = false, overwrite = false, smoke_test = false, dry_run = false;
  int64_t sample_tokens = 0;
  std::vector<std::string> sample_prompts;

  // Every option that stands for a key of the job, as --set would give it.
  std::vector<std::string> overrides() const {
    std::vector<std::string> all = settings;
    if (!stop.empty()) all.push_back(override_text("training.stop", stop));
    if (!data.empty()) all.push_back(override_text("data.train", data));
    if (!target.empty()) {
      all.push_back(override_text("data.train_target", target));
    } else if (!data.empty()) {
      all.emplace_back("data.train_target=null");  // what belongs to the job's own data.train
    }
    if (!output.empty()) all.push_back(override_text("output", output));
    if (!device.empty()) all.push_back(override_text("device", device));
    if (!sample_prompts.empty()) all.push_back(override_text("training.sample_prompts", sample_prompts));
    if (sample_tokens > 0) all.push_back(fmt::format("training.sample_tokens={}", sample_tokens));
    return all;
  }
};

// "runs/reviews: early stopping at step 120, loss 0.4312, best validation accuracy ..."; empty if there was no step.
std::string last_line(const TrainResult& result) {
  const auto& best = result.best_evaluation;
  if (!result.last_step && !result.last_evaluation) return "";
  // Early stopping follows an evaluation, and not always a step that is logged.
  const bool early = result.ended == "early stopping" && result.last_evaluation;
  std::string line = fmt::format("{}: {}step {}", result.run_path, early ? "early stopping at " : "",
                                 early || !result.last_step ? result.last_evaluation->step : *result.last_step);
  if (result.last_step) line += fmt::format(", loss {:.4f}", result.loss);
  if (best)
    line += fmt::format(", best validation {} at step {}", metrics_text(best->metrics, result.best_by), best->step);
  return line + "\n";
}

TrainingJob given_job(Runtime& runtime, TrainArguments& arguments) {
  const JobArgument given = look_at_job_argument(arguments.job_path);
  if (given.kind == JobArgument::Kind::run) {
    if (!arguments.resume && arguments.output.empty() && !arguments.smoke_test) {
      throw UserError(fmt::format(
          "{}: a run; add --resume to go on with it, or --output FOLDER to train its job again in another folder",
          arguments.job_path));
    }
    if (arguments.output.empty()) arguments.output = arguments.job_path;
  }
  if (given.kind != JobArgument::Kind::text) return TrainingJob::load(runtime, given.path, arguments.overrides());
  arguments.data.insert(arguments.data.begin(), given.path);
  say(runtime,
      "{}: text, so a language model with the default settings is trained on it; for others write a job, and run brisk "
      "train JOB --data {}",
      given.path, shell_word(given.path));
  // As the job file's would be: "book" of book.txt.gz.
  const std::string file = std::filesystem::path(given.path).filename().string();
  return TrainingJob::parse(runtime, "{}", arguments.overrides(), file.substr(0, file.find('.', 1)));
}

// A batch script that Slurm starts again has the same command line: the run that the first start began goes on. So does that of
// brisk launch's only rank.
void go_on_when_requeued(Runtime& runtime, const std::string& run, TrainArguments& arguments) {
  const std::string_view count = runtime.environment("SLURM_RESTART_COUNT");
  const bool again = !count.empty() && count != "0";
  const bool alone_again =
      runtime.environment("BRISK_WORLD_SIZE") == "1" && !runtime.environment("BRISK_RANK_RESTARTED").empty();
  if (arguments.resume || !(again || alone_again) || !std::filesystem::exists(run + "/job.json")) return;
  arguments.resume = true;
  arguments.overwrite = false;
  if (again) say(runtime, "Slurm has started the job again (SLURM_RESTART_COUNT is {}): going on with {}", count, run);
}

int run_train(Runtime& runtime, TrainArguments& arguments, Ranks& ranks) {
  const TrainingJob job = given_job(runtime, arguments);
  if (arguments.smoke_test) {
    if (ranks.size() > 1) throw UserError("--smoke-test tries a job in one process: start it without a launcher");
    if (run_smoke_test(job, arguments.resume)) return kExitDone;
    say(runtime, "interrupted: the smoke test left nothing behind");
    return kExitInterrupted;
  }
  if (!arguments.dry_run) go_on_when_requeued(runtime, job.output(), arguments);
  std::optional<StartInterruptGuard> starting;
  starting.emplace(ranks.rank() == 0 ? job.output() : "");
  std::optional<InterruptGuard> training;
  constexpr std::string_view kAnswer =
      "interrupted: finishing this step (or evaluation) and saving; a second Ctrl-C ends it at once, and what was trained "
      "since the last checkpoint is lost";
  const TrainResult outcome = train(runtime, job,
                                    {.resume = arguments.resume,
                                     .overwrite = arguments.overwrite,
                                     .dry_run = arguments.dry_run,
                                     .ranks = &ranks,
                                     .before_first_step = [&] {
                                       starting.reset();
                                       training.emplace(runtime, ranks.rank() == 0 ? kAnswer : std::string_view());
                                     }});
  training.reset();
  if (arguments.dry_run) {
    say(runtime, "dry run: the job, its data and its memory are fine, and nothing was trained; {} is as it was",
        outcome.run_path);
    return kExitDone;
  }
  if (outcome.interrupted) {
    // The run's own job file includes what --data and --set said.
    say(runtime, "interrupted: everything is saved in {}; continue with\n  brisk train {} --resume", outcome.run_path,
        shell_word(outcome.run_path));
    return kExitInterrupted;
  }
  if (ranks.rank() > 0) return kExitDone;
  fmt::print("{}", last_line(outcome));
  say(runtime, "done: {}\n  {}", outcome.run_path, job.usage(shell_word(outcome.run_path)));
  return kExitDone;
}

}  // namespace

void add_train_command(CLI::App& app, Runtime& runtime, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "train", "Train a language model, a classifier or a masked-language-model encoder, as described by a job file");
  auto arguments = std::make_shared<TrainArguments>();
  command
      ->add_option(
          "job", arguments->job_path,
          "Job file (JSON; `brisk job reference` lists its keys), run directory (with --resume), or text to train the "
          "default job on")
      ->required();
  command->add_option("--data", arguments->data,
                      "Text to train on, or a table with labels: files, folders or globs; overrides data.train");
  command->add_option("--target", arguments->target,
                      "Files whose lines are the translations of the lines of --data; overrides data.train_target");
  command
      ->add_option("--set", arguments->settings,
                   "Set a key of the job, such as training.batch_size=64 (may be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);  // one each, so that the job file may come after it
  command->add_option("--output", arguments->output, "Run directory (default: runs/<name of the job>)");
  command
      ->add_option(
          "--stop", arguments->stop,
          "How long to train: 2e epochs, 500u steps, 10Mt tokens, 30m time, auto: until the Slurm allocation ends "
          "(shorthand for training.stop)")
      ->type_name("LENGTH")
      ->check([](const std::string& text) { return std::string(text.empty() ? "expected a length such as 30m" : ""); });
  command->add_flag("--smoke-test", arguments->smoke_test,
                    "Try the whole path in seconds on a small subset of the data; writes nothing to the run directory");
  command->add_option("--device", arguments->device, std::string(kDeviceHelp) + "; overrides the job's device");
  CLI::Option* resume =
      command->add_flag("--resume", arguments->resume,
                        "Continue from the last checkpoint in the run directory; a finished run goes on if it is made "
                        "longer");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the run that the run directory holds")
      ->excludes(resume);
  command->add_flag("--dry-run", arguments->dry_run,
                    "Check the job, the data and the memory, and stop before the first step; writes nothing to the run "
                    "directory");
  command
      ->add_option("--sample-tokens", arguments->sample_tokens,
                   "Generate a sample of this many tokens at each evaluation; overrides training.sample_tokens")
      ->check(at_least(0));
  command
      ->add_option("--sample-prompt", arguments->sample_prompts,
                   "Text that a sample continues; overrides training.sample_prompts (may be repeated)")
      ->type_name("PROMPT")
      ->allow_extra_args(false);
  command->footer(
      "The job's task says what is learned: language_model (the next token of a text; the default), classify (the class\n"
      "of a text or an image, from a .csv, .tsv or .jsonl with labels, or of images from a folder for each class), mlm (masked\n"
      "tokens of a text: an encoder to fine-tune), translate (the translation of a text, from two aligned files or a table),\n"
      "image_to_text (the text of an image: captions, recognised lines, translated pages).\n\n"
      "Examples:\n"
      "  brisk train examples/prototype.json --data book.txt\n"
      "  brisk train examples/sentiment-distilbert.json --data reviews.csv\n"
      "  brisk train examples/translate.json --data a.en --target a.de\n"
      "  brisk train job.json --set training.batch_size=64 --set training.precision=fp32 --output runs/b64\n"
      "  brisk train job.json --stop 30m\n"
      "  brisk train runs/b64 --resume\n"
      "  brisk train runs/b64 --resume --stop 3e\n"
      "  brisk train book.txt");
  command->callback([&runtime, arguments, &exit_code] {
    Ranks ranks(runtime);
    try {
      exit_code = run_train(runtime, *arguments, ranks);
    } catch (const std::exception& error) {
      ranks.fail(error.what());  // before the job is read, the training has told nobody
      throw;
    }
  });
}

}  // namespace brisk
