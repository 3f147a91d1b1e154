#include <brisk/version.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/spelling.h"
#include "cli/command.h"
#include "cli/flag_hints.h"
#include "cli/mapped_file_fault.h"
#include "cli/memory_fault.h"
#include "comm/communicator.h"
#include "job/options/options.h"

namespace brisk {
namespace {

// CLI11 itself would only say that a command is missing.
void refuse_unknown_command(const CLI::App& app, const std::string& given) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), given) != names.end()) return;
  const std::string nearest = nearest_word(given, names);
  user_error("'{}' is not a command of {}; {}", given, app.get_name() == "brisk" ? "brisk" : "brisk " + app.get_name(),
             nearest.empty() ? fmt::format("the commands are {}", fmt::join(names, ", "))
                             : fmt::format("did you mean {}?", nearest));
}

// Names the first flag that the command does not have; CLI11 lists the leftovers in reverse order.
std::string unknown_flag(const CLI::App& app, int argc, char** argv, const std::string& otherwise) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], given = word.substr(0, word.find('='));
    if (!given.starts_with("--") || given == "--" || std::find(names.begin(), names.end(), given) != names.end())
      continue;
    const bool has_next = i + 1 < argc && argv[i + 1][0] != '-';
    const std::string value = given != word ? word.substr(given.size() + 1) : has_next ? argv[i + 1] : "";
    const std::string hint = flag_hint(command->get_name(), given, value);
    const std::string nearest = hint.empty() ? nearest_word(given, names) : "";
    return fmt::format("{}: {} has no such flag{}", given, path,
                       !hint.empty()      ? "; " + hint
                       : !nearest.empty() ? fmt::format("; did you mean {}?", nearest)
                                          : "");
  }
  const bool may_be_output = otherwise.find(" -") == std::string::npos || otherwise.find(" -o") != std::string::npos;
  const bool writes = may_be_output && std::find(names.begin(), names.end(), "--output") != names.end();
  return otherwise + (writes ? "; what it writes is named by --output" : "");
}

int run(int argc, char** argv, Runtime& runtime) {
  CLI::App app{"brisk trains transformers as fast as the machine allows, and shows where every millisecond went.",
               "brisk"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "brisk " BRISK_VERSION_STRING);
  app.footer(
      "Examples:\n"
      "  brisk train examples/prototype.json --data text.txt\n"
      "  brisk generate runs/prototype --prompt \"In the beginning\"\n"
      "  brisk machine\n"
      "Every command has --help.");
  int exit_code = kExitDone;
  add_train_command(app, runtime, exit_code);
  add_generate_command(app, runtime);
  add_translate_command(app, runtime);
  add_predict_command(app, runtime);
  add_eval_command(app, runtime);
  add_score_command(app, runtime);
  add_doctor_command(app, runtime, exit_code);
  add_launch_command(app, exit_code);
  add_plan_command(app, runtime);
  add_report_command(app);
  add_compare_command(app);
  add_tokenizer_command(app);
  add_machine_command(app, runtime);
  add_bench_command(app, runtime);
  add_job_command(app);
  add_completion_command(app);
  add_manual_command(app);
  add_import_command(app);
  add_export_command(app, runtime);
  if (argc > 1 && argv[1][0] != '-') {
    refuse_unknown_command(app, argv[1]);
    set_memory_advice(argv[1]);
    const CLI::App* command = app.get_subcommand(argv[1]);
    const bool has_commands = !command->get_subcommands(nullptr).empty();
    if (has_commands && argc > 2 && argv[2][0] != '-') refuse_unknown_command(*command, argv[2]);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::RequiredError& error) {
    const bool has_data = std::find(argv, argv + argc, std::string_view("--data")) != argv + argc;
    say("brisk: {}{}\nRun with --help for more information.", error.what(),
        has_data ? "; --data takes every argument after it: put the job or the run before --data" : "");
    return kExitUserError;
  } catch (const CLI::ExtrasError& error) {
    say("brisk: {}\nRun with --help for more information.", unknown_flag(app, argc, argv, error.what()));
    return kExitUserError;
  } catch (const CLI::ParseError& error) {
    say("brisk: {}\nRun with --help for more information.", error.what());
    return kExitUserError;
  }
  return exit_code;
}

// If the program is started with a standard stream closed, the first file it opens would get that descriptor, and
// messages would be written into the file.
void open_closed_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) open("/dev/null", O_RDWR);  // the lowest free number
  }
}

// Flushing may still fail on a full disk: a script must not take half a result for a whole one.
void finish_standard_output() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return;
  int reason = errno;
  // The reason of an earlier failed write is lost; another write fails for the same reason.
  if (reason == 0 && ::write(STDOUT_FILENO, "\n", 1) < 0) reason = errno;
  if (reason == EPIPE) return;  // the reader has seen enough: `| head`
  user_error("standard output: cannot write it: {}", explain_errno(reason != 0 ? reason : EIO));
}

}  // namespace
}  // namespace brisk

int main(int argc, char** argv) {
  brisk::open_closed_descriptors();
  brisk::handle_mapped_file_faults();
  brisk::handle_memory_faults();
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit is then an ordinary write error, which a save survives
  signal(SIGPIPE, SIG_IGN);  // so is a pipe that nobody reads: `brisk train ... 2>&1 | tee log`, Ctrl-C, still saves
  brisk::Runtime runtime({.names_flags = true});
  const brisk::RuntimeScope scope(runtime);
  try {
    const int exit_code = brisk::run(argc, argv, runtime);
    brisk::finish_standard_output();
    return exit_code;
  } catch (const brisk::RankLost& error) {
    // One of the ranks says it; of those of brisk launch, the launcher does.
    if (error.is_untold() && runtime.environment("BRISK_RANK").empty()) {
      runtime.set_quiet(false);
      brisk::say_line(fmt::format("{} {}. Continue from the last checkpoint with --resume",
                                  brisk::coloured_in_log("brisk:", brisk::Colour::red), error.what()));
    }
    return brisk::kExitRankLost;
  } catch (const brisk::UserError& error) {
    brisk::say_line(fmt::format("{} {}", brisk::coloured_in_log("brisk:", brisk::Colour::red), error.what()));
    return brisk::kExitUserError;
  } catch (const brisk::Cancelled&) {
    return brisk::kExitInterrupted;
  } catch (const std::bad_alloc&) {
    brisk::say("{}", brisk::out_of_memory());
    return brisk::kExitUserError;
  } catch (const std::filesystem::filesystem_error& error) {
    const bool memory = error.code() == std::errc::not_enough_memory;
    const std::string path = error.path1().empty() ? "the current folder" : error.path1().string();
    brisk::say_line(memory ? brisk::out_of_memory()
                           : fmt::format("brisk: {}: {}", path, brisk::explain_errno(error.code().value())));
    return brisk::kExitUserError;
  } catch (const std::system_error& error) {
    const bool output = std::ferror(stdout) != 0;
    if (output && error.code().value() == EPIPE) return brisk::kExitDone;
    brisk::say("brisk: {}{}", output ? "standard output: cannot write it: " : "internal error (please report): ",
               output ? brisk::explain_errno(error.code().value()) : error.what());
    return output ? brisk::kExitUserError : brisk::kExitInternalError;
  } catch (const std::exception& error) {
    brisk::say("brisk: internal error (please report): {}", error.what());
    return brisk::kExitInternalError;
  }
}
