#include <signal.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/terminal.h"
#include "cli/command.h"

namespace brisk {
namespace {

int run(int argc, char** argv) {
  CLI::App app{"brisk trains transformers as fast as the machine allows, and shows where every millisecond went.",
               "brisk"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "brisk 0.1.0");
  app.footer(
      "Examples:\n"
      "  brisk train examples/prototype.json --data text.txt\n"
      "  brisk generate runs/prototype --prompt \"In the beginning\"\n"
      "  brisk machine\n"
      "Every command has --help.");
  int exit_code = kExitDone;
  add_train_command(app, exit_code);
  add_generate_command(app);
  add_eval_command(app);
  add_tokenizer_command(app);
  add_machine_command(app);
  add_bench_command(app);
  add_job_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    say("brisk: {}\nRun with --help for more information.", error.what());
    return kExitUserCanMend;
  }
  return exit_code;
}

}  // namespace
}  // namespace brisk

int main(int argc, char** argv) {
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit is then an ordinary write error, which a save survives
  try {
    return brisk::run(argc, argv);
  } catch (const brisk::UserError& error) {
    brisk::say("{} {}", brisk::coloured("brisk:", brisk::Colour::red, 2), error.what());
    return brisk::kExitUserCanMend;
  } catch (const std::bad_alloc&) {
    brisk::say("brisk: out of memory; use a smaller model or training.micro_batch_tokens");
    return brisk::kExitUserCanMend;
  } catch (const std::exception& error) {
    brisk::say("brisk: a fault in brisk itself: {}", error.what());
    return brisk::kExitOurFault;
  }
}
