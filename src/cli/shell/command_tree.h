// The commands and options of brisk as they were declared to the parser, for what is generated from them: the manual
// page and shell completion.
//
//   const Command brisk = describe_command(app);
//   for_each_command(brisk, [](const Command& command) { fmt::print("{}\n", command.path); });  // "brisk", "brisk
//   train" brisk.commands[0].options[0].names;                                                         // {"-h",
//   "--help"}
//
// An option whose value is text names a file or a folder, and is completed so. One that does not says what it takes by
// its type name: ->type_name("NUMBER"); "KEY=VALUE" is a key of the job (job_settings()). What is hidden from --help
// (->group("")) is left out.
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
  std::vector<std::string> names;  // "-h", "--help"; of a positional one its only name, "job"
  std::string help;
  ArgumentValue value = ArgumentValue::none;
  std::string value_name;            // "TEXT", "INT", "KEY=VALUE"; empty where there is no value
  std::vector<std::string> choices;  // all there are, where value is choice
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

// The command itself, then all below it.
void for_each_command(const Command& command, const std::function<void(const Command&)>& visit);

struct JobSetting {
  std::string key;  // "training.precision"
  std::string help;
  std::vector<std::string> choices;  // "true" and "false" of a flag; empty where anything goes
};

// What --set may set.
std::vector<JobSetting> job_settings();

}  // namespace brisk
