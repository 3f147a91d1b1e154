#include "cli/shell/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/command.h"

namespace brisk {

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else if (c == '\\') {
      quoted += "'\\\\'";  // outside of the quotes: fish reads \\ inside them as one
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string completion_function_name(const Command& command) {
  std::string name = "_" + command.path;
  for (char& c : name) {
    if (c == ' ' || c == '-') c = '_';
  }
  return name;
}

void add_completion_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes brisk's command line in a shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Examples:\n"
      "  source <(brisk completion bash)\n"
      "  brisk completion zsh > ~/.zfunc/_brisk\n"
      "  brisk completion fish > ~/.config/fish/completions/brisk.fish\n"
      "An installed brisk has them in place.");
  command->callback([&app, shell] {
    const Command brisk = describe_command(app);
    fmt::print("{}", *shell == "bash"  ? bash_completion(brisk)
                     : *shell == "zsh" ? zsh_completion(brisk)
                                       : fish_completion(brisk));
  });
}

}  // namespace brisk
