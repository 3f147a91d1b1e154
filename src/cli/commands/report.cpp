#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "cli/command.h"
#include "report/page/report_page.h"

namespace brisk {

namespace {

struct ReportArguments {
  std::string run, output;
  bool json = false;
};

void run_report(const ReportArguments& arguments) {
  const RunRecord run = read_run(arguments.run);
  for (const std::string& note : run.notes) warn("{}", note);
  if (!arguments.output.empty() || !arguments.json) {
    const bool own_place = arguments.output.empty();
    const std::string path = own_place ? arguments.run + "/report.html" : arguments.output;
    write_file_atomically(path, report_page(run), own_place ? Links::refuse : Links::follow);
    if (arguments.json) {
      say("written: {}", path);
    } else {
      fmt::print("{}\n", path);
    }
  }
  if (arguments.json) fmt::print("{}\n", report_json(run));
}

}  // namespace

void add_report_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("report", "Write an HTML page about a run: curves, speed, ledger, samples, settings");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option("run", arguments->run, "Run directory; the run may still be in progress")->required();
  command->add_option("--output", arguments->output, "File to write (default: report.html in the run directory)");
  command->add_flag("--json", arguments->json,
                    "Print the figures as one JSON object on standard output; writes no page unless --output is given");
  command->footer(
      "Examples:\n"
      "  brisk report runs/prototype\n"
      "  brisk report runs/prototype --output prototype.html\n"
      "  brisk report runs/prototype --json");
  command->callback([arguments] { run_report(*arguments); });
}

}  // namespace brisk
