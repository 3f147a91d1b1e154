#include "report/page/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "cli/command.h"

namespace brisk {

namespace {

struct CompareArguments {
  std::vector<std::string> runs;
  std::string html;
  bool json = false;
};

void run_compare(const CompareArguments& arguments) {
  std::vector<RunRecord> runs;
  for (const std::string& path : arguments.runs) {
    runs.push_back(read_run(path));
    for (const std::string& note : runs.back().notes) warn("{}", note);
  }
  const Comparison comparison = compare_runs(std::move(runs));
  if (!arguments.html.empty()) {
    write_file_atomically(arguments.html, comparison_page(comparison), Links::follow);
    say("written: {}", arguments.html);
  }
  if (arguments.json) {
    fmt::print("{}\n", comparison_json(comparison));
  } else {
    fmt::print("{}", comparison_text(comparison));
  }
}

}  // namespace

void add_compare_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("compare", "Compare runs side by side: quality, time, speed, settings");
  auto arguments = std::make_shared<CompareArguments>();
  command->add_option("runs", arguments->runs, "Run directories to compare")->required();
  command->add_option("--html", arguments->html, "Also write an HTML page with the curves to this file");
  command->add_flag("--json", arguments->json, "Print one JSON object on standard output instead of the tables");
  command->footer(
      "Examples:\n"
      "  brisk compare runs/a runs/b\n"
      "  brisk compare runs/*/ --html compare.html");
  command->callback([arguments] { run_compare(*arguments); });
}

}  // namespace brisk
