// What the program says of itself to manual readers and shells, and what an installation holds. What there is to name
// is found by asking every command for --help.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

struct CommandHelp {
  std::string path;  // "tokenizer train"; "" is brisk itself
  std::vector<std::string> options, commands;
};

CommandHelp ask(const std::string& path, const TemporaryFolder& folder) {
  std::vector<std::string> arguments = words_of(path);
  arguments.emplace_back("--help");
  CommandHelp help{path};
  std::istringstream lines(run_brisk(arguments, folder).out);
  std::string part;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != ' ') part = line;
    // Names stand at the second column; what goes on from the line above stands further right.
    if (line.size() < 3 || !line.starts_with("  ") || line[2] == ' ') continue;
    const std::string name = words_of(line).front();
    if (part == "Subcommands:") help.commands.push_back(name);
    if (part == "Options:") help.options.push_back(name.substr(name.find("--")));
  }
  return help;
}

void walk(const std::string& path, const TemporaryFolder& folder, std::vector<CommandHelp>& found) {
  found.push_back(ask(path, folder));
  for (const std::string& name : std::vector<std::string>(found.back().commands))
    walk(path.empty() ? name : path + " " + name, folder, found);
}

const std::vector<CommandHelp>& all_commands() {
  static const std::vector<CommandHelp> commands = [] {
    TemporaryFolder folder;
    std::vector<CommandHelp> found;
    walk("", folder, found);
    return found;
  }();
  return commands;
}

std::string full_name(const CommandHelp& command) { return command.path.empty() ? "brisk" : "brisk " + command.path; }

// From `begin` to the next `end`; empty where there is none.
std::string part_of(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t at = text.find(begin);
  if (at == std::string::npos) return "";
  return text.substr(at, text.find(end, at + begin.size()) - at);
}

struct ShellOutcome {
  int exit_code = -1;
  std::string out;  // standard output and error
};

ShellOutcome shell(const std::string& command, const TemporaryFolder& folder) {
  ShellOutcome outcome;
  FILE* pipe = popen(("cd '" + folder.path() + "' && { " + command + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  for (size_t count; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.out.append(buffer, count);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  return outcome;
}

bool installed(const std::string& program, const TemporaryFolder& folder) {
  return shell("command -v " + program, folder).exit_code == 0;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST(TheWalkOverHelp, FindsWhatEveryoneKnows) {  // or the tests below would ask for nothing
  const auto has_option = [](const std::string& path, const std::string& option) {
    return std::any_of(all_commands().begin(), all_commands().end(), [&](const CommandHelp& command) {
      return command.path == path &&
             std::find(command.options.begin(), command.options.end(), option) != command.options.end();
    });
  };
  EXPECT_TRUE(has_option("", "--version"));
  EXPECT_TRUE(has_option("train", "--resume"));
  EXPECT_TRUE(has_option("tokenizer train", "--vocab-size"));
}

TEST(Manual, DescribesEveryCommandAndOption) {
  TemporaryFolder folder;
  const std::string page = replaced(run_brisk({"manual"}, folder).out, "\\-", "-");
  for (const CommandHelp& command : all_commands()) {
    const std::string part =
        part_of(page, command.path.empty() ? ".SH COMMANDS AND OPTIONS\n" : ".SS " + full_name(command) + "\n", "\n.S");
    EXPECT_NE(part, "") << full_name(command);
    if (!command.path.empty() && !command.commands.empty()) continue;  // only leads to those below it
    for (const std::string& option : command.options)
      EXPECT_TRUE(has(part, "\\fB" + option + "\\fR")) << full_name(command) << " " << option << "\n" << part;
  }
}

TEST(Manual, DescribesEveryKeyOfAJob) {
  TemporaryFolder folder;
  const std::string page = replaced(run_brisk({"manual"}, folder).out, "\\-", "-");
  std::istringstream reference(run_brisk({"job", "reference"}, folder).out);
  std::string section;
  int64_t keys = 0;
  for (std::string line; std::getline(reference, line);) {
    if (line.starts_with("## `")) section = part_of(line.substr(4), "", "`") + ".";
    if (!line.starts_with("| `")) continue;
    const std::string key = section + part_of(line.substr(3), "", "`");
    EXPECT_TRUE(has(page, "\n\\fB" + key + "\\fR\n")) << key;
    ++keys;
  }
  EXPECT_GT(keys, 30);
}

TEST(Manual, IsTypesetWithoutAWarning) {
  TemporaryFolder folder;
  if (!installed("groff", folder)) GTEST_SKIP() << "groff is not installed";
  write_text(folder / "brisk.1", run_brisk({"manual"}, folder).out);
  const ShellOutcome outcome = shell("groff -man -Tutf8 -wall brisk.1 > page.txt", folder);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(has(read_text(folder / "page.txt"), "Interrupted, after everything was saved."));
}

// The words bash would offer at the last of `words`, one a line.
std::vector<std::string> offered(const std::vector<std::vector<std::string>>& command_lines,
                                 const TemporaryFolder& folder) {
  write_text(folder / ".completion", run_brisk({"completion", "bash"}, folder).out);
  std::string script = "source .completion\n";
  for (const std::vector<std::string>& words : command_lines) {
    script += "COMP_WORDS=(";
    for (const std::string& word : words) script += " '" + word + "'";
    script += ")\nCOMP_CWORD=" + std::to_string(words.size() - 1) + "\n_brisk\necho \" ${COMPREPLY[*]} \"\n";
  }
  write_text(folder / ".script", script);
  const ShellOutcome outcome = shell("bash .script", folder);
  EXPECT_EQ(outcome.exit_code, 0);
  std::istringstream lines(outcome.out);
  std::vector<std::string> result;
  for (std::string line; std::getline(lines, line);) result.push_back(line);
  EXPECT_EQ(result.size(), command_lines.size()) << outcome.out;
  result.resize(command_lines.size());
  return result;
}

class BashCompletion : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!installed("bash", folder)) GTEST_SKIP() << "bash is not installed";
  }
  std::string at(const std::vector<std::string>& words) { return offered({words}, folder).front(); }

  TemporaryFolder folder;
};

TEST_F(BashCompletion, IsRegistered) {
  write_text(folder / ".completion", run_brisk({"completion", "bash"}, folder).out);
  EXPECT_EQ(shell("bash -c 'source .completion; complete -p brisk'", folder).out,
            "complete -o default -F _brisk brisk\n");
}

TEST_F(BashCompletion, OffersEveryCommandAndOption) {
  std::vector<std::vector<std::string>> command_lines;
  for (const CommandHelp& command : all_commands()) {
    for (const char* begun : {"--", ""}) {
      command_lines.push_back(words_of(full_name(command)));
      command_lines.back().emplace_back(begun);
    }
  }
  const std::vector<std::string> offers = offered(command_lines, folder);
  for (size_t i = 0; i < all_commands().size(); ++i) {
    const CommandHelp& command = all_commands()[i];
    for (const std::string& option : command.options)
      EXPECT_TRUE(has(offers[2 * i], " " + option + " ")) << full_name(command) << ": " << offers[2 * i];
    for (const std::string& name : command.commands)
      EXPECT_TRUE(has(offers[2 * i + 1], " " + name + " ")) << full_name(command) << ": " << offers[2 * i + 1];
  }
}

TEST_F(BashCompletion, OffersWhatAnOptionTakes) {
  write_text(folder / "book.txt", "");
  write_text(folder / "job.json", "{}");
  EXPECT_EQ(at({"brisk", "train", "j"}), " job.json ");
  EXPECT_EQ(at({"brisk", "train", "job.json", "--data", "b"}), " book.txt ");
  EXPECT_EQ(at({"brisk", "train", "job.json", "--output", "=", "b"}), " book.txt ");
  EXPECT_EQ(at({"brisk", "bench", "lm", "--precision", ""}), " fp32 tf32 bf16 fp16 fp8 auto ");
  EXPECT_EQ(at({"brisk", "completion", "f"}), " fish ");
  EXPECT_EQ(at({"brisk", "generate", "run", "--prompt", ""}), "  ");  // no file names for a prompt
}

TEST_F(BashCompletion, OffersKeysOfTheJobAndTheirChoices) {
  EXPECT_EQ(at({"brisk", "train", "--set", "training.batch_s"}), " training.batch_size= ");
  EXPECT_TRUE(has(at({"brisk", "train", "--set", "training.precision", "="}), " bf16 "));
  EXPECT_EQ(at({"brisk", "train", "--set", "training.precision", "=", "fp3"}), " fp32 ");
  EXPECT_EQ(at({"brisk", "train", "--set", "model.tie_embeddings", "=", "t"}), " true ");
}

TEST(ZshCompletion, KnowsEveryCommandAndOption) {
  TemporaryFolder folder;
  const std::string script = run_brisk({"completion", "zsh"}, folder).out;
  EXPECT_TRUE(script.starts_with("#compdef brisk\n"));
  for (const CommandHelp& command : all_commands()) {
    const std::string function = "_" + replaced(full_name(command), " ", "_");
    const std::string body = part_of(script, "\n" + function + "() {\n", "\n}\n");
    for (const std::string& option : command.options) {
      EXPECT_TRUE(has(body, ")" + option + "[") || has(body, ")" + option + "=[") || has(body, "*" + option + "=["))
          << function << " " << option << "\n"
          << body;
    }
    for (const std::string& name : command.commands)
      EXPECT_TRUE(has(body, name + ") " + function + "_" + name + " ;;")) << function << " " << name;
  }
  write_text(folder / "_brisk", script);
  if (installed("zsh", folder)) {
    EXPECT_EQ(shell("zsh -n _brisk", folder).out, "");
  }
}

TEST(FishCompletion, KnowsEveryCommandAndOption) {
  TemporaryFolder folder;
  const std::string script = run_brisk({"completion", "fish"}, folder).out;
  for (const CommandHelp& command : all_commands()) {
    const std::string line = "complete -c brisk -n '__brisk_command_is " + full_name(command) + "' ";
    for (const std::string& option : command.options) {
      const std::string name = "-l " + option.substr(2) + " ";
      bool known = has(script, line + name);
      for (const char* letter : {"-s h ", "-s n ", "-s r "}) known = known || has(script, line + letter + name);
      EXPECT_TRUE(known) << line << name;
    }
    for (const std::string& name : command.commands) EXPECT_TRUE(has(script, line + "-f -a " + name + " ")) << name;
  }
  write_text(folder / "brisk.fish", script);
  if (installed("fish", folder)) {
    EXPECT_EQ(shell("fish -n brisk.fish", folder).out, "");
  }
}

TEST(Completion, OfAnUnknownShellIsRefused) {
  TemporaryFolder folder;
  const Outcome outcome = run_brisk({"completion", "tcsh"}, folder);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(has(outcome.err, "bash")) << outcome.err;
}

TEST(Installation, HoldsTheProgramAndWhatBelongsToIt) {
  TemporaryFolder folder;
  const ShellOutcome install =
      shell(BRISK_CMAKE " --install " BRISK_BUILD " --prefix '" + folder.path() + "/there'", folder);
  ASSERT_EQ(install.exit_code, 0) << install.out;
  for (const char* file :
       {"bin/brisk", "share/man/man1/brisk.1.gz", "share/bash-completion/completions/brisk",
        "share/zsh/site-functions/_brisk", "share/fish/vendor_completions.d/brisk.fish",
        "share/doc/brisk/examples/prototype.json", "share/doc/brisk/LICENSE", "share/doc/brisk/copyright"}) {
    const std::string path = folder / std::string("there/") + file;
    EXPECT_TRUE(std::filesystem::exists(path) && std::filesystem::file_size(path) > 0) << file;
  }
  EXPECT_EQ(shell("there/bin/brisk --version", folder).out, "brisk " BRISK_VERSION "\n");
  EXPECT_EQ(shell("gzip -dc there/share/man/man1/brisk.1.gz", folder).out, run_brisk({"manual"}, folder).out);
  EXPECT_EQ(read_text(folder / "there/share/bash-completion/completions/brisk"),
            run_brisk({"completion", "bash"}, folder).out);
}

}  // namespace
}  // namespace brisk::program
