#include "cli/shell/command_tree.h"

#include <CLI/CLI.hpp>

#include "job/job_options.h"

namespace brisk {

namespace {

// CLI11 keeps the words of IsMember only inside the type name: "TEXT:{fp32,bf16}".
std::vector<std::string> choices_of(const std::string& type) {
  const size_t open = type.find(":{"), close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 2, close - open - 2), ',');
}

Argument describe_argument(const CLI::Option& option) {
  Argument argument;
  for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
  if (argument.names.empty()) argument.names.push_back(option.get_name());
  argument.help = option.get_description();
  argument.required = option.get_required();
  if (option.get_items_expected_max() == 0) return argument;  // a flag

  const std::string type = option.get_type_name();
  argument.value_name = type.substr(0, type.find(':'));
  argument.choices = choices_of(type);
  argument.default_text = option.get_default_str();
  argument.several = option.get_items_expected_max() > 1;
  if (!argument.choices.empty()) {
    argument.value = ArgumentValue::choice;
  } else if (argument.value_name == "KEY=VALUE") {
    argument.value = ArgumentValue::job_setting;
  } else {
    argument.value = argument.value_name == "TEXT" ? ArgumentValue::path : ArgumentValue::other;
    if (argument.value == ArgumentValue::path) argument.value_name = "PATH";
  }
  return argument;
}

Command describe(const CLI::App& app, const std::string& above) {
  Command command{.name = app.get_name(), .path = above + app.get_name(), .help = app.get_description()};
  command.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->nonpositional() ? command.options : command.positionals).push_back(describe_argument(*option));
  }
  for (const CLI::App* below : app.get_subcommands(nullptr)) {
    if (!below->get_group().empty()) command.commands.push_back(describe(*below, command.path + " "));
  }
  return command;
}

}  // namespace

Command describe_command(const CLI::App& app) { return describe(app, ""); }

void for_each_command(const Command& command, const std::function<void(const Command&)>& visit) {
  visit(command);
  for (const Command& below : command.commands) for_each_command(below, visit);
}

std::vector<JobSetting> job_settings() {
  Job job;
  std::vector<JobSetting> settings;
  for (const Option& option : declare_job_options(job)) {
    JobSetting setting{option.path, option.help, option.choices};
    if (std::holds_alternative<bool*>(option.field)) setting.choices = {"true", "false"};
    settings.push_back(std::move(setting));
  }
  return settings;
}

}  // namespace brisk
