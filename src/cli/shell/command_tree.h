// The commands and options of brisk as declared to CLI11, from which the manual page and shell completion are
// generated.
//
//   const Command brisk = describe_command(app);
//   for_each_command(brisk, [](const Command& command) { fmt::print("{}\n", command.path); });
//   brisk.commands[0].path;               // "brisk train"
//   brisk.commands[0].options[0].names;   // {"-h", "--help"}
//
// The value of an option with the default type name is a file or a folder, and is completed as one. Other options say
// what they take by their type name: ->type_name("NUMBER"); "KEY=VALUE" is a key of the job (job_settings()). Options
// hidden from --help (->group("")) are left out.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace brisk {

enum class ArgumentValue { none, path, choice, job_setting, other };

struct Argument {
  std::vector<std::string> names;  // "-h", "--help"; a positional argument has one name: "job"
  std::string help;
  ArgumentValue value = ArgumentValue::none;
  std::string value_name;            // "TEXT", "INT", "KEY=VALUE"; empty for flags
  std::vector<std::string> choices;  // if value is ArgumentValue::choice
  std::string default_text;
  bool required = false, several = false;
};

struct Command {
  std::string name, path;  // "train", "brisk tokenizer train"
  std::string help, footer;
  std::vector<Argument> options, positionals;
  std::vector<Command> commands;
};

Command describe_command(const CLI::App& app);

// The command itself, then all its subcommands.
void for_each_command(const Command& command, const std::function<void(const Command&)>& visit);

struct JobSetting {
  std::string key;  // "training.precision"
  std::string help;
  std::vector<std::string> choices;  // "true" and "false" for a flag; empty if any value is allowed
};

// The keys that --set accepts.
std::vector<JobSetting> job_settings();

}  // namespace brisk
