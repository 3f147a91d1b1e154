#include <brisk/job.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "doctor/plan/planner.h"
#include "doctor/show/planning_json.h"
#include "doctor/show/planning_text.h"
#include "infer/open/model_source.h"

namespace brisk {

namespace {

struct PlanArguments {
  std::string job_path, other_path, machine_path;
  std::vector<std::string> data, settings;
  bool json = false;
};

Job planned_job(const PlanArguments& arguments, const std::string& path, const std::vector<std::string>& more) {
  std::vector<std::string> overrides = arguments.settings;
  if (!arguments.data.empty()) overrides.push_back(override_text("data.train", arguments.data));
  overrides.insert(overrides.end(), more.begin(), more.end());
  std::vector<std::string> notes;
  Job job = load_job(path, overrides, notes);
  const std::vector<std::string> taken = take_model_from_source(job, false), chosen = resolve_defaults(job);
  if (!more.empty()) return job;  // a variation, of which nobody wants to hear it again
  for (const std::string& note : notes) say("{}", note);
  for (const std::string& line : taken) say("{}", line);
  if (!chosen.empty()) say("chosen: {}", fmt::join(chosen, ", "));
  return job;
}

void run_plan(Runtime& runtime, const PlanArguments& arguments) {
  const RuntimeScope scope(runtime);
  const InterruptGuard guard(runtime, "interrupted: nothing is known yet\n");
  PlanOptions options{.paths = {arguments.job_path}, .machine_path = arguments.machine_path};
  if (!arguments.other_path.empty()) options.paths.push_back(arguments.other_path);
  options.load = [&](const std::string& path, const std::vector<std::string>& settings) {
    return planned_job(arguments, path, settings);
  };
  const Planning planning = make_plan(options);
  fmt::print("{}\n", arguments.json ? planning_json(planning) : planning_text(planning));
}

}  // namespace

void add_plan_command(CLI::App& app, Runtime& runtime) {
  CLI::App* command =
      app.add_subcommand("plan", "Tell what a job will take before it is trained: parameters, time, memory, disk");
  auto arguments = std::make_shared<PlanArguments>();
  command->add_option("job", arguments->job_path, "Job file")->required();
  command->add_option("other", arguments->other_path, "Another job file: the two side by side, with ratios");
  command->add_option("--data", arguments->data, "Text to train on, or a table with labels; overrides data.train");
  command
      ->add_option("--set", arguments->settings, "Set a key of the job, such as model.num_layers=12 (may be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--machine", arguments->machine_path,
                      "Plan for another machine, from the file that brisk machine --json wrote there");
  command->add_flag("--json", arguments->json, "Print one JSON object on standard output");
  command->footer(
      "A few real steps of the job, and of larger ones, are timed here, in runs of their own that are removed; the job's\n"
      "run and its data stay as they are. It takes 10 to 20 s for a small job.\n\n"
      "Examples:\n"
      "  brisk plan job.json\n"
      "  brisk plan job.json --set model.d_model=512\n"
      "  brisk plan small.json large.json\n"
      "  brisk machine --json > here.json                # on the other machine\n"
      "  brisk plan job.json --machine here.json --json");
  command->callback([&runtime, arguments] { run_plan(runtime, *arguments); });
}

}  // namespace brisk
