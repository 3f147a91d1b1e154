#include "job/job.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "doctor/judge/rules.h"

namespace brisk {

void add_job_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("job", "Describe the keys of job files, and what slows a job down");
  command->require_subcommand(1);
  CLI::App* schema = command->add_subcommand("schema", "Print the JSON schema of job files");
  schema->footer("Example:\n  brisk job schema > job.schema.json");
  schema->callback([] { fmt::print("{}\n", job_schema()); });
  CLI::App* reference = command->add_subcommand("reference", "Print the reference of all keys (Markdown)");
  reference->footer("Example:\n  brisk job reference > job.md");
  reference->callback([] { fmt::print("{}", job_reference_markdown()); });
  CLI::App* troubleshooting = command->add_subcommand(
      "troubleshooting", "Print why a job may train slowly or wrongly, and what to do (Markdown)");
  troubleshooting->footer("Example:\n  brisk job troubleshooting > troubleshooting.md");
  troubleshooting->callback([] { fmt::print("{}", troubleshooting_markdown()); });
  command->footer("Examples:\n  brisk job schema > job.schema.json\n  brisk job reference");
}

}  // namespace brisk
