#include "doctor/doctor.h"

#include <brisk/job.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "cli/as_ranks.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/shell_word.h"
#include "doctor/apply.h"
#include "doctor/measure/worker.h"
#include "doctor/show/diagnosis_json.h"
#include "doctor/show/diagnosis_page.h"
#include "doctor/show/diagnosis_text.h"
#include "infer/architecture/unread_options.h"
#include "infer/open/model_source.h"
#include "job/run_length.h"

namespace brisk {

namespace {

struct DoctorArguments {
  std::string job_path, budget = "5m", fix = "same-maths", apply, report, baseline;
  std::vector<std::string> data, settings, tries;
  bool verify = false, json = false;
};

double budget_seconds(const std::string& text) {
  try {
    const RunLength length = parse_run_length(text, "--budget");
    if (length.unit == RunLength::Unit::seconds) return length.amount;
  } catch (const UserError&) {  // speaks of epochs and steps, too
  }
  user_error("--budget: found \"{}\", expected a time such as \"5m\", \"40s\" or \"1h30m\"", text);
}

// A file that is written at the end is refused at the beginning: one that is read as well, or that cannot be written.
void check_output(const std::string& path, const char* flag, const std::string& job_path, const Job& job) {
  if (path.empty()) return;
  const auto is_at = [&](const std::string& other) {
    std::error_code ignored;
    return std::filesystem::equivalent(path, other, ignored);
  };
  if (is_at(job_path)) user_error("{} {}: that is the job itself, which stays as it is; give another file", flag, path);
  std::vector<std::string> data = job.data.validation;
  for (const DataSource& source : job.data.train) data.push_back(source.path);
  for (const auto* paths : {&job.data.train_target, &job.data.validation_target})
    data.insert(data.end(), paths->begin(), paths->end());
  if (std::any_of(data.begin(), data.end(), is_at))
    user_error("{} {}: that is the job's data, which stay as they are; give another file", flag, path);
  if (is_at(run_directory_of(job) + "/job.json"))
    user_error("{} {}: that is a part of the job's run, which stays as it is; give another file", flag, path);
  if (is_directory(path)) user_error("{} {}: a folder, expected a file to write", flag, path);
  AtomicFile(path, Links::follow);  // can be written; what it would replace stays
}

void check_outputs(const DoctorArguments& arguments, const Job& job) {
  check_output(arguments.apply, "--apply", arguments.job_path, job);
  check_output(arguments.report, "--report", arguments.job_path, job);
  const auto place = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
  };
  if (!arguments.apply.empty() && !arguments.report.empty() && place(arguments.apply) == place(arguments.report))
    user_error("--apply and --report name the same file, {}: give each one of its own", arguments.apply);
}

// As JSON values; a bare word is a string.
std::vector<std::string> tries_of(const DoctorArguments& arguments) {
  std::vector<std::string> tries;
  for (const std::string& setting : arguments.tries) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == setting.size())
      user_error("--try {}: expected KEY=VALUE, such as training.max_length=64", setting);
    const std::string value = setting.substr(equals + 1);
    const bool is_json = !parse_json_or_discard(value).is_discarded();
    tries.push_back(setting.substr(0, equals + 1) + (is_json ? value : nlohmann::ordered_json(value).dump()));
  }
  return tries;
}

// The command that repeats the diagnosis.
std::string command_of(const DoctorArguments& arguments) {
  std::string text = "brisk doctor " + shell_word(arguments.job_path);
  for (const std::string& setting : arguments.settings) text += " --set " + shell_word(setting);
  for (const std::string& path : arguments.data) text += " --data " + shell_word(path);
  for (const std::string& setting : arguments.tries) text += " --try " + shell_word(setting);
  if (!arguments.baseline.empty()) text += " --baseline " + arguments.baseline;
  return text + " --budget " + arguments.budget + (arguments.fix == "all" ? " --fix all" : "");
}

Job given_job(const DoctorArguments& arguments) {
  std::vector<std::string> overrides = arguments.settings;
  if (!arguments.data.empty()) overrides.push_back(override_text("data.train", arguments.data));
  std::vector<std::string> notes;
  Job job = load_job(arguments.job_path, overrides, notes);
  for (const std::string& note : notes) say("{}", note);
  for (const std::string& line : take_model_from_source(job, false)) say("{}", line);
  if (const std::vector<std::string> chosen = resolve_defaults(job); !chosen.empty())
    say("chosen: {}", fmt::join(chosen, ", "));
  check_model_options(job);
  return job;
}

void apply(const DoctorArguments& arguments, const Diagnosis& diagnosis) {
  const bool has_changes = std::any_of(diagnosis.ladder.begin(), diagnosis.ladder.end(),
                                       [](const Rung& rung) { return rung.kept && rung.fix.is_setting(); });
  if (!has_changes) {
    say("{}: not written, since no change was kept", arguments.apply);
    return;
  }
  const std::string original = read_file(arguments.job_path, file_kind::job);
  write_file_atomically(arguments.apply, tuned_job_text(diagnosis, original, arguments.apply), Links::follow);
  const auto several = std::find_if(diagnosis.ladder.begin(), diagnosis.ladder.end(),
                                    [](const Rung& rung) { return rung.kept && rung.fix.processes > 1; });
  const std::string launch =
      several != diagnosis.ladder.end() ? fmt::format("launch -n {} ", several->fix.processes) : std::string();
  say("written: {}; train it with\n  brisk {}train {}", arguments.apply, launch, shell_word(arguments.apply));
}

int run_doctor(Runtime& runtime, const DoctorArguments& arguments) {
  const RuntimeScope scope(runtime);
  const DoctorOptions options{.job_path = arguments.job_path,
                              .settings = arguments.settings,
                              .naive = arguments.baseline == "naive",
                              .budget_seconds = budget_seconds(arguments.budget),
                              .changes_maths = arguments.fix == "all",
                              .tries = tries_of(arguments),
                              .verify = arguments.verify};
  const Job job = given_job(arguments);
  check_outputs(arguments, job);
  const InterruptGuard guard(runtime,
                             "interrupted: ending with what is known so far; a second Ctrl-C ends it at once\n");
  Diagnosis diagnosis = diagnose(job, options);
  diagnosis.command = command_of(arguments);
  diagnosis.tuned_text = job_to_json_text(diagnosis.tuned);
  if (!arguments.report.empty()) {
    const bool markdown = arguments.report.ends_with(".md");
    write_file_atomically(arguments.report, markdown ? diagnosis_markdown(diagnosis) : diagnosis_page(diagnosis),
                          Links::follow);
    say("written: {}", arguments.report);
  }
  if (!arguments.apply.empty()) apply(arguments, diagnosis);
  fmt::print("{}\n", arguments.json ? diagnosis_json(diagnosis) : diagnosis_text(diagnosis));
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
  command
      ->add_option("--try", arguments->tries,
                   "Measure this change too, such as training.max_length=64 (may be repeated); it is not kept")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--apply", arguments->apply, "Write the tuned job to this file, with what changed and why");
  command->add_flag("--verify", arguments->verify, "Train both jobs to the end and compare their quality");
  command->add_option("--report", arguments->report, "Write a page to this file: HTML, or Markdown if it ends in .md");
  command->add_flag("--json", arguments->json, "Print one JSON object on standard output");
  command->footer(
      "It trains the job for a few minutes, in runs of its own that are removed: the job's run, its files and its data\n"
      "stay as they are.\n\n"
      "Examples:\n"
      "  brisk doctor job.json\n"
      "  brisk doctor job.json --budget 10m --report doctor.html --apply fast.json\n"
      "  brisk doctor job.json --baseline naive --budget 40s\n"
      "  brisk doctor job.json --try training.max_length=64 --try model.vocab_size=8000\n"
      "  brisk doctor job.json --json > diagnosis.json");
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
    run_as_ranks(runtime, [&](Ranks& ranks) { run_worker(*worker_options, ranks.group()); });
  });
}

}  // namespace brisk
