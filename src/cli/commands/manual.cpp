// The manual page brisk(1), in troff, from the declared commands and the declared keys of a job.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <sstream>
#include <string_view>
#include <variant>

#include "cli/command.h"
#include "cli/shell/command_tree.h"
#include "job/job_options.h"

namespace brisk {

namespace {

// Characters that troff would otherwise typeset differently: hyphen for minus, curly for straight quotes.
std::string escaped_sign(char c) {
  switch (c) {
    case '\\': return "\\(rs";
    case '-': return "\\-";
    case '\'': return "\\(aq";
    case '`': return "\\(ga";
    case '^': return "\\(ha";
    case '~': return "\\(ti";
    case '"': return "\\(dq";
    default: return std::string(1, c);
  }
}

// Escapes text for the page; non-ASCII characters by code point, which every troff can read.
std::string troff(std::string_view text) {
  std::string out = text.starts_with('.') ? "\\&" : "";  // a dot that begins a line is a request
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length == 1) {
      out += escaped_sign(text[i]);
    } else {
      uint32_t code = lead & (0x7FU >> length);
      for (size_t k = 1; k < length && i + k < text.size(); ++k)
        code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
      out += fmt::format("\\[u{:04X}]", code);
    }
    i += length;
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + troff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + troff(text) + "\\fR"; }

// Indented lines are examples and stay as they are; other lines are text.
std::string footer_text(const std::string& footer) {
  std::istringstream lines(footer);
  std::string text;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    const bool example = line.starts_with("  ");
    if (example && !inside) text += ".PP\n.RS 4\n.nf\n";
    if (!example && inside) text += ".fi\n.RE\n";
    if (!example) text += ".PP\n";
    inside = example;
    text += troff(example ? line.substr(2) : line) + "\n";
  }
  return text + (inside ? ".fi\n.RE\n" : "");
}

std::string tagged(const std::string& tag, const std::string& text) { return ".TP\n" + tag + "\n" + text + "\n"; }

std::string argument_text(const Argument& argument, bool positional) {
  std::string tag;
  for (const std::string& name : argument.names)
    tag += (tag.empty() ? "" : ", ") + (positional ? italic(name) : bold(name));
  if (!positional && !argument.choices.empty()) {
    tag += " " + troff(fmt::format("{}", fmt::join(argument.choices, "|")));
  } else if (!positional && !argument.value_name.empty()) {
    tag += " " + italic(argument.value_name);
  }
  if (argument.several) tag += " ...";
  std::string help = troff(argument.help);
  if (!argument.default_text.empty()) help += troff(fmt::format(" (default: {})", argument.default_text));
  if (argument.required && !positional) help += " (required)";
  return tagged(tag, help);
}

std::string synopsis(const Command& command) {
  std::string line = bold(command.path) + " [" + italic("option") + "]...";
  for (const Argument& positional : command.positionals)
    line += " " + italic(positional.names.front()) + (positional.several ? "..." : "");
  return line;
}

std::string commands_text(const Command& brisk) {
  std::string text;
  for (const Argument& option : brisk.options) text += argument_text(option, false);
  for_each_command(brisk, [&](const Command& command) {
    if (command.path == brisk.path) return;
    text += fmt::format(".SS {}\n{}.\n", troff(command.path), troff(command.help));
    if (!command.commands.empty()) return;  // each of those below has its own part
    text += ".PP\n" + synopsis(command) + "\n";
    for (const Argument& positional : command.positionals) text += argument_text(positional, true);
    for (const Argument& option : command.options) text += argument_text(option, false);
    text += footer_text(command.footer);
  });
  return text;
}

std::string key_text(const Option& option, const std::string& key) {
  const std::string standard = option.is_automatic() ? option.automatic_rule : option.default_text;
  std::string help = troff(option.help);
  if (const std::string allowed = option.range(); !allowed.empty()) help += troff(fmt::format("; {}", allowed));
  if (!option.unit.empty()) help += troff(fmt::format("; in {}", option.unit));
  if (!standard.empty() && standard != "\"\"") help += troff(fmt::format(" (default: {})", standard));
  return tagged(bold(key), help);
}

std::string job_text() {
  Job job;
  const std::vector<Option> options = declare_job_options(job);
  std::string text;
  for (const auto& [section, description] : job_sections()) {
    text += fmt::format(".SS {}\n{}\n", section.empty() ? "The top of the file" : troff(section), troff(description));
    for (const Option& option : options) {
      if (option.section() != section) continue;
      text += key_text(option, option.path);
      if (const auto* items = std::get_if<std::shared_ptr<OptionItems>>(&option.field)) {
        for (const Option& inner : (*items)->example()) text += key_text(inner, option.path + "[]." + inner.path);
      }
    }
  }
  return text;
}

std::string manual_page(const Command& brisk, const std::string& version) {
  std::string_view summary = brisk.help;
  if (summary.starts_with("brisk ")) summary.remove_prefix(6);
  if (summary.ends_with('.')) summary.remove_suffix(1);
  std::string page = ".\\\" Generated by `brisk manual` from the declarations of its commands and options.\n";
  page += fmt::format(".TH BRISK 1 \"\" \"{}\" \"User Commands\"\n.nh\n.ad l\n", troff(version));
  page += fmt::format(".SH NAME\nbrisk \\- {}\n.SH SYNOPSIS\n.nf\n", troff(summary));
  for_each_command(brisk, [&](const Command& command) {
    if (command.commands.empty()) page += synopsis(command) + "\n";
  });
  page += ".fi\n.SH DESCRIPTION\n" + troff(brisk.help) + "\n" + footer_text(brisk.footer);
  page += ".SH COMMANDS AND OPTIONS\n" + commands_text(brisk);
  page += ".SH JOB FILES\nA job is a JSON file; comments are allowed, and every key has a default. " +
          bold("brisk train --set") + " changes a key from the command line.\n" + job_text();
  page += ".SH ENVIRONMENT\n" +
          tagged(bold("BRISK_ISA"), "Instruction set to use instead of the best the processor has: " +
                                        troff("baseline, avx2, avx512, avx512bf16 or amx.")) +
          tagged(bold("BRISK_GEMM"), "The implementation of matrix products: own, onednn, blas or reference.") +
          tagged(bold("NO_COLOR"), "If set, no colours on a terminal.") +
          tagged(bold("XDG_CACHE_HOME"),
                 "The cache is in the folder brisk below it; if unset, in " + italic("~/.cache/brisk") + ".");
  page += ".SH EXIT STATUS\n";
  page += tagged(bold(fmt::format("{}", kExitDone)), "Done.");
  page += tagged(bold(fmt::format("{}", kExitInternalError)), "Internal error in brisk.");
  page += tagged(bold(fmt::format("{}", kExitUserError)), "An error the user can fix; the message says how.");
  page += tagged(bold(fmt::format("{}", kExitInterrupted)), "Interrupted, after everything was saved.");
  return page;
}

}  // namespace

void add_manual_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("manual", "Print the manual page (troff)");
  command->footer("Example:\n  brisk manual | man -l -");
  command->callback([&app] { fmt::print("{}", manual_page(describe_command(app), app.version())); });
}

}  // namespace brisk
