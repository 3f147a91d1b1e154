#include "doctor/doctor.h"

#include <brisk/job.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "doctor/measure/worker.h"
#include "infer/open/model_source.h"
#include "job/run_length.h"

namespace brisk {

namespace {

struct DoctorArguments {
  std::string job_path, budget = "5m", fix = "same-maths", apply, report, baseline;
  std::vector<std::string> data, settings;
  bool verify = false, json = false;
};

double budget_seconds(const std::string& text) {
  const RunLength length = parse_run_length(text, "--budget");
  if (length.unit != RunLength::Unit::seconds) user_error("--budget {}: expected a time, such as 5m or 40s", text);
  return length.amount;
}

int run_doctor(Runtime& runtime, const DoctorArguments& arguments) {
  const RuntimeScope scope(runtime);
  DoctorOptions options{.job_path = arguments.job_path,
                        .settings = arguments.settings,
                        .naive = arguments.baseline == "naive",
                        .budget_seconds = budget_seconds(arguments.budget),
                        .changes_maths = arguments.fix == "all",
                        .verify = arguments.verify};
  std::vector<std::string> overrides = arguments.settings;
  if (!arguments.data.empty()) overrides.push_back(override_text("data.train", arguments.data));
  std::vector<std::string> notes;
  Job job = load_job(arguments.job_path, overrides, notes);
  for (const std::string& note : notes) say("{}", note);
  take_model_from_source(job, false);
  resolve_defaults(job);
  const InterruptGuard guard(runtime,
                             "interrupted: ending with what is known so far; a second Ctrl-C ends it at once\n");
  const Diagnosis diagnosis = diagnose(job, options);
  fmt::print("{}\n", diagnosis.summary());
  for (const Rung& rung : diagnosis.ladder) {
    fmt::print(
        "{:<34} {:>10.0f} tokens/s  gain {:.3f} [{:.3f}, {:.3f}] ({} pairs)  predicted {:.2f}  cumulative {:.2f}  {} MiB  loss {:.4f}+-{:.4f}  util {:.1f} %  {}\n",
        rung.step, rung.tokens_per_second, rung.gain, rung.gain_low, rung.gain_high, rung.pairs, rung.predicted_gain,
        rung.cumulative, rung.peak_memory_bytes >> 20, rung.loss, rung.loss_spread, 100 * rung.utilisation,
        rung.verdict);
  }
  for (const NotMeasured& rung : diagnosis.not_measured)
    fmt::print("not measured: {} ({:.2f}x): {}\n", rung.step, rung.predicted_gain, rung.reason);
  return diagnosis.interrupted ? kExitInterrupted : kExitDone;
}

}  // namespace

void add_doctor_command(CLI::App& app, Runtime& runtime, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Measure why a training is slow, try the fixes one by one, and prove that the result is the same");
  auto arguments = std::make_shared<DoctorArguments>();
  command->add_option("job", arguments->job_path, "Job file")->required();
  command->add_option("--data", arguments->data, "Text to train on, or a table with labels; overrides data.train");
  command
      ->add_option("--set", arguments->settings,
                   "Set a key of the job, such as training.batch_size=64 (may be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--baseline", arguments->baseline,
                   "naive: begin the ladder with one sequence at a time, padded to max_length, in fp32")
      ->check(CLI::IsMember({"naive"}));
  command->add_option("--budget", arguments->budget, "How long it may take, such as 40s or 5m (default: 5m)");
  command
      ->add_option("--fix", arguments->fix,
                   "Which fixes are tried: same-maths (the result stays the same; default), or all")
      ->check(CLI::IsMember({"same-maths", "all"}));
  command->add_option("--apply", arguments->apply, "Write the tuned job to this file");
  command->add_flag("--verify", arguments->verify, "Train both jobs to the end and compare their quality");
  command->add_option("--report", arguments->report, "Write an HTML page to this file");
  command->add_flag("--json", arguments->json, "Print one JSON object on standard output");
  command->callback([&runtime, arguments, &exit_code] { exit_code = run_doctor(runtime, *arguments); });

  // The process of a measured run (doctor/measure/worker.h).
  CLI::App* worker = app.add_subcommand("doctor-run", "")->group("");
  auto worker_options = std::make_shared<WorkerOptions>();
  worker->add_option("job", worker_options->job_path)->required();
  worker->add_option("commands", worker_options->commands)->required();
  worker->add_option("answers", worker_options->answers)->required();
  worker->add_option("gradient", worker_options->gradient_path);
  worker->callback([&runtime, worker_options] {
    const RuntimeScope scope(runtime);
    run_worker(*worker_options);
  });
}

}  // namespace brisk
