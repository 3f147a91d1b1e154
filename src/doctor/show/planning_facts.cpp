#include "doctor/show/planning_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace brisk {

namespace {

using Kind = ComparedFigure::Kind;

const ComponentReadings* component_of(const JobPlan& plan, const std::string& name) {
  const auto& all = plan.size.components;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
  return found != all.end() ? &*found : nullptr;
}

std::vector<std::string> components_of_both(const JobPlan& first, const JobPlan& second) {
  std::vector<std::string> names;
  for (const JobPlan* plan : {&first, &second}) {
    for (const ComponentReadings& component : plan->size.components) {
      if (std::find(names.begin(), names.end(), component.name) == names.end()) names.push_back(component.name);
    }
  }
  return names;
}

}  // namespace

std::vector<ComparedFigure> compared_figures(const JobPlan& first, const JobPlan& second) {
  std::vector<ComparedFigure> figures;
  const auto add = [&](std::string name, Kind kind, auto value) {
    figures.push_back({std::move(name), kind, static_cast<double>(value(first)), static_cast<double>(value(second))});
  };
  add("parameters", Kind::parameters, [](const JobPlan& plan) { return plan.size.parameters; });
  add("FLOP a token", Kind::flop, [](const JobPlan& plan) { return plan.size.flop_per_token; });
  add("tokens an epoch", Kind::tokens, [](const JobPlan& plan) { return plan.size.tokens_per_epoch; });
  add("FLOP an epoch", Kind::flop,
      [](const JobPlan& plan) { return plan.size.flop_per_token * plan.size.tokens_per_epoch; });
  add("memory", Kind::bytes, [](const JobPlan& plan) { return plan.size.memory.total(); });
  add("tokens/s", Kind::speed, [](const JobPlan& plan) { return plan.outlook.tokens_per_second; });
  add("time of a step", Kind::seconds, [](const JobPlan& plan) { return plan.outlook.step_seconds; });
  add("time of an epoch", Kind::seconds, [](const JobPlan& plan) { return plan.outlook.epoch_seconds; });
  add("time of the run", Kind::seconds, [](const JobPlan& plan) { return plan.outlook.run_seconds; });
  add("disk", Kind::bytes, [](const JobPlan& plan) { return plan.size.disk.total(); });
  const std::vector<std::string> names = components_of_both(first, second);
  for (const std::string& name : names) {
    const auto parameters = [&](const JobPlan& plan) {
      const ComponentReadings* component = component_of(plan, name);
      return component != nullptr ? component->parameters : -1;
    };
    if (std::max(parameters(first), parameters(second)) > 0) add(name + ": parameters", Kind::parameters, parameters);
  }
  for (const std::string& name : names) {
    const auto flop = [&](const JobPlan& plan) {
      const ComponentReadings* component = component_of(plan, name);
      return component != nullptr ? component->flop_per_token : -1;
    };
    if (std::max(flop(first), flop(second)) > 0) add(name + ": FLOP a token", Kind::flop, flop);
  }
  using Memory = JobSize::Memory;
  const std::pair<const char*, int64_t Memory::*> parts[] = {
      {"weights", &Memory::weights},         {"gradients", &Memory::gradients},   {"optimizer", &Memory::optimizer},
      {"activations", &Memory::activations}, {"evaluation", &Memory::evaluation}, {"workspaces", &Memory::workspaces}};
  for (const auto& [name, part] : parts) {
    add(fmt::format("memory: {}", name), Kind::bytes,
        [part = part](const JobPlan& plan) { return plan.size.memory.*part; });
  }
  return figures;
}

std::string figure_text(Kind kind, double value) {
  if (value < 0) return "-";
  switch (kind) {
    case Kind::bytes: return format_bytes(value);
    case Kind::seconds: return format_duration(value);
    default: return format_count(value);
  }
}

std::string machine_name(const Planning& planning) {
  if (!planning.other) return planning.here.name;
  return fmt::format("{} ({})", planning.other->name, planning.other->path);
}

std::string summary_of(const JobPlan& plan) {
  const Outlook& outlook = plan.outlook;
  std::string text =
      fmt::format("{} parameters, {} of memory: {}", format_count(static_cast<double>(outlook.parameters)),
                  format_bytes(static_cast<double>(outlook.memory_bytes)), outlook.fits ? "fits" : "does not fit");
  if (outlook.tokens_per_second > 0) {
    text += fmt::format("; {} tokens/s, {} an epoch", format_count(outlook.tokens_per_second),
                        format_duration(outlook.epoch_seconds));
  }
  return text;
}

std::string command_that_checks(const JobPlan& plan, const Outlook& outlook) {
  if (outlook.settings.empty()) return "";
  std::string text = "brisk train " + plan.path;
  for (const std::string& setting : outlook.settings) text += " --set " + setting;
  return text;
}

}  // namespace brisk
