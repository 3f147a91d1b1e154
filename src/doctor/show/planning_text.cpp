#include "doctor/show/planning_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "doctor/show/planning_facts.h"
#include "doctor/show/wrapped.h"

namespace brisk {

namespace {

constexpr int64_t kMargin = 14;

std::string bytes_text(int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }
std::string count_text(int64_t count) { return format_count(static_cast<double>(count)); }
std::string time_text(double seconds) { return seconds > 0 ? format_duration(seconds) : "-"; }
std::string speed_text(double speed) { return speed > 0 ? format_count(speed) : "-"; }
std::string yes_or_no(bool yes) { return yes ? "yes" : "no"; }

std::string line(const char* name, const std::string& text) {
  return wrapped(fmt::format("{:<{}}", name, kMargin), text, kMargin);
}

std::string ratio_text(double ratio) { return ratio < 0 ? "-" : fmt::format("{:.2f}x", ratio); }

std::string components_table(const JobSize& size) {
  Table table({"component",
               {"parameters", Align::right},
               {"share", Align::right},
               {"FLOP a token", Align::right},
               {"share", Align::right}});
  const auto share = [](double part, double whole) {
    return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-";
  };
  const auto parameters = static_cast<double>(size.parameters);
  for (const ComponentReadings& component : size.components) {
    const auto own = static_cast<double>(component.parameters);
    table.add_row({component.name, component.parameters > 0 ? format_count(own) : "",
                   component.parameters > 0 ? share(own, parameters) : "",
                   component.flop_per_token > 0 ? format_count(component.flop_per_token) : "",
                   component.flop_per_token > 0 ? share(component.flop_per_token, size.flop_per_token) : ""});
  }
  table.add_separator();
  table.add_row({"all", format_count(parameters), "", format_count(size.flop_per_token), ""});
  return table.text();
}

std::string length_text(const JobPlan& plan) {
  const JobSize& size = plan.size;
  if (size.total_steps <= 0) return fmt::format("its time box of {}", format_duration(size.box_seconds));
  const double epochs = static_cast<double>(size.total_steps) / static_cast<double>(size.steps_per_epoch);
  return fmt::format("{}, {}", plural(size.total_steps, "step"),
                     epochs == 1 ? "an epoch" : fmt::format("{:.3g} epochs", epochs));
}

std::string time_lines(const JobPlan& plan) {
  const Outlook& outlook = plan.outlook;
  if (outlook.step_seconds <= 0) return line("time", "not known: no step of this job could be timed here");
  std::string spread;
  if (plan.times && plan.times->spread >= 0 && !plan.here)
    spread = fmt::format(", the stretches within {:.0f} % of each other", 200 * plan.times->spread);
  std::string text = line("speed", fmt::format("{} tokens/s, {} a step ({}{})", format_count(outlook.tokens_per_second),
                                               format_duration(outlook.step_seconds), outlook.basis, spread));
  text += line("time", fmt::format("{} an epoch, evaluations and checkpoints included; {} for the run ({})",
                                   format_duration(outlook.epoch_seconds), format_duration(outlook.run_seconds),
                                   length_text(plan)));
  if (outlook.ranks > 1) {
    text += line("ranks", fmt::format("{}: of a step {} are communication that nothing hides ({:.1f} %); each sends {}",
                                      outlook.ranks, format_duration(std::max(0.0, outlook.exposed_seconds)),
                                      100 * std::max(0.0, outlook.exposed_seconds) / outlook.step_seconds,
                                      format_bytes(outlook.network_bytes_per_step)));
  }
  if (plan.here) {
    text +=
        line("here", fmt::format("{} tokens/s, {} an epoch; {}", speed_text(plan.here->tokens_per_second),
                                 time_text(plan.here->epoch_seconds), plan.here->fits ? "it fits" : "it does not fit"));
  }
  return text;
}

std::string memory_lines(const JobPlan& plan) {
  const JobSize::Memory& memory = plan.size.memory;
  std::string text =
      line("memory",
           fmt::format("{} of {} available: {}. Weights {}, gradients {}, optimizer {}, activations {}, evaluation {}, "
                       "workspaces {}, a copy to save from {}, the program {}",
                       bytes_text(memory.total()), bytes_text(std::max<int64_t>(0, plan.memory_available)),
                       plan.outlook.fits ? "it fits" : "it does not fit", bytes_text(memory.weights),
                       bytes_text(memory.gradients), bytes_text(memory.optimizer), bytes_text(memory.activations),
                       bytes_text(memory.evaluation), bytes_text(memory.workspaces), bytes_text(memory.copy),
                       bytes_text(memory.program)));
  const JobSize& size = plan.size;
  const int64_t longest = std::max<int64_t>(1, size.longest);
  text += line(
      "batch",
      size.largest_micro_batch_tokens > 0
          ? fmt::format("at most {} tokens fit at once here: {} of {} tokens (training.micro_batch_tokens, {} in "
                        "this job). A larger batch is computed in parts and needs no more memory",
                        size.largest_micro_batch_tokens, plural(size.largest_micro_batch_tokens / longest, "sequence"),
                        longest, size.micro_batch_tokens)
          : "not even one sequence fits into this machine's memory");
  return text;
}

std::string disk_line(const JobSize& size) {
  const JobSize::Disk& disk = size.disk;
  return line("disk",
              fmt::format("{} when it is over: {} of {}, {} of tokens in the cache{}; at most {} of checkpoints on "
                          "the way, and {} are free",
                          bytes_text(disk.total()), plural(disk.kept, "checkpoint"), bytes_text(disk.checkpoint),
                          bytes_text(disk.cache),
                          disk.other > 0 ? fmt::format(", {} of frozen weights", bytes_text(disk.other)) : "",
                          bytes_text(disk.at_most), bytes_text(std::max<int64_t>(0, disk.free))));
}

std::string job_lines(const JobPlan& plan) {
  const JobSize& size = plan.size;
  std::string text =
      line("model", fmt::format("{}, {} wide, vocabulary of {}; {} parameters{}", plural(size.layers, "layer"),
                                size.width, size.vocabulary, count_text(size.parameters),
                                size.trained_parameters < size.parameters
                                    ? fmt::format(", of which {} are trained", count_text(size.trained_parameters))
                                    : ""));
  text += line("data", fmt::format("{} sequences with {} tokens an epoch, the longest {}; {} of {:.0f} sequences",
                                   format_count(size.sequences_per_epoch), format_count(size.tokens_per_epoch),
                                   size.longest, plural(size.steps_per_epoch, "step"), size.sequences_per_step));
  return text + time_lines(plan) + memory_lines(plan) + disk_line(size);
}

std::string what_if_table(const JobPlan& plan) {
  if (plan.what_if.empty()) return "";
  Table table({"what would it take?",
               {"parameters", Align::right},
               {"memory", Align::right},
               "fits",
               {"tokens/s", Align::right},
               {"a step", Align::right},
               {"an epoch", Align::right},
               {"disk", Align::right}});
  std::string below;
  for (const Outlook& outlook : plan.what_if) {
    table.add_row({outlook.change, count_text(outlook.parameters), bytes_text(outlook.memory_bytes),
                   yes_or_no(outlook.fits), speed_text(outlook.tokens_per_second), time_text(outlook.step_seconds),
                   time_text(outlook.epoch_seconds), bytes_text(outlook.disk_bytes)});
    std::string note = fmt::format("{}: {}", outlook.change, outlook.basis);
    if (outlook.network_bytes_per_step > 0) {
      note += fmt::format(
          "; the rest of a step's sequences elsewhere, and {} sent by each machine in every step. What a network adds is not in "
          "the time",
          format_bytes(outlook.network_bytes_per_step));
      for (const Outlook::OnNetwork& network : outlook.networks) {
        note += fmt::format("{} {} at {:g} Gbit/s", &network == outlook.networks.data() ? " (predicted:" : ",",
                            format_duration(network.exposed_seconds), network.gigabits_a_second);
      }
      if (!outlook.networks.empty()) note += ")";
    }
    if (const std::string command = command_that_checks(plan, outlook); !command.empty())
      note += fmt::format("; {}", command);
    below += wrapped("- ", note, 2);
  }
  return table.text() + below + "\n";
}

std::string shapes_table(const JobPlan& plan) {
  if (plan.shapes.empty()) return "";
  Table table({{"in", Align::right},
               "shape",
               {"parameters", Align::right},
               {"tokens/s", Align::right},
               {"tokens", Align::right},
               {"a parameter", Align::right},
               {"epochs", Align::right},
               ""});
  for (const ShapeForTime& shape : plan.shapes) {
    table.add_row({format_duration(shape.seconds), fmt::format("{} x {}", shape.layers, shape.width),
                   count_text(shape.parameters), speed_text(shape.tokens_per_second), format_count(shape.tokens),
                   fmt::format("{:.3g}", shape.tokens / static_cast<double>(shape.parameters)),
                   fmt::format("{:.2g}", shape.epochs), shape.data_is_short ? "more data would help" : ""});
  }
  return "which shape trains best in a given time? (a rule of thumb)\n" + table.text() +
         wrapped(
             "- ",
             "about 20 tokens for each parameter (Hoffmann et al., 2022), counting at most four epochs of the same data "
             "(Muennighoff et al., 2023); layers x width, a layer for every 64; speeds are scaled by FLOP from the steps "
             "that were timed",
             2) +
         "\n";
}

std::string models_table(const JobPlan& plan) {
  if (plan.models.empty()) return "";
  Table table({"model to start from",
               {"layers", Align::right},
               {"width", Align::right},
               {"parameters", Align::right},
               {"on disk", Align::right},
               {"memory", Align::right},
               "fits",
               {"tokens/s", Align::right},
               {"an epoch", Align::right}});
  for (const ModelChoice& model : plan.models) {
    table.add_row({model.name, fmt::format("{}", model.layers), fmt::format("{}", model.width),
                   count_text(model.parameters), bytes_text(model.model_bytes), bytes_text(model.memory_bytes),
                   yes_or_no(model.fits), speed_text(model.tokens_per_second), time_text(model.epoch_seconds)});
  }
  return table.text() +
         wrapped(
             "- ",
             "parameters, memory and size of the published shapes, with this job's batches and lengths; times from steps "
             "of each width timed here with this job's texts and tokenizer (two layers, or this job's own), the other "
             "layers by FLOP. docs/models.md says how to get one",
             2) +
         "\n";
}

std::string one_job(const Planning& planning) {
  const JobPlan& plan = planning.jobs.front();
  std::string text = wrapped("", fmt::format("{}: {}", plan.name, summary_of(plan)), 2);
  text += wrapped("", fmt::format("on {}{}", machine_name(planning), planning.other ? ": a prediction" : ""), 2);
  text += "\n" + job_lines(plan) + "\n" + components_table(plan.size) + "\n";
  text += models_table(plan) + what_if_table(plan) + shapes_table(plan);
  for (const std::string& note : plan.notes) text += wrapped("note: ", note, 6);
  return text;
}

std::string two_jobs(const Planning& planning) {
  const JobPlan &first = planning.jobs[0], &second = planning.jobs[1];
  std::string text;
  for (const JobPlan& plan : planning.jobs) text += wrapped("", fmt::format("{}: {}", plan.name, summary_of(plan)), 2);
  text += wrapped("", "on " + machine_name(planning), 2) + "\n";
  const bool same_name = first.name == second.name;
  Table table({"",
               {shortened(same_name ? first.path : first.name, 24), Align::right},
               {shortened(same_name ? second.path : second.name, 24), Align::right},
               {"ratio", Align::right}});
  bool in_components = false;
  for (const ComparedFigure& figure : compared_figures(first, second)) {
    const bool is_component = figure.name.find(':') != std::string::npos;
    if (is_component && !in_components) table.add_separator();
    in_components = is_component;
    table.add_row({figure.name, figure_text(figure.kind, figure.first), figure_text(figure.kind, figure.second),
                   ratio_text(figure.ratio())});
  }
  text += table.text() + "\n";
  for (const JobPlan& plan : planning.jobs) {
    text += wrapped("- ", fmt::format("{}: {}", plan.name, plan.outlook.basis), 2);
    for (const std::string& note : plan.notes) text += wrapped("note: ", fmt::format("{}: {}", plan.name, note), 6);
  }
  return text;
}

}  // namespace

std::string planning_text(const Planning& planning) {
  std::string text = planning.jobs.size() > 1 ? two_jobs(planning) : one_job(planning);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace brisk
