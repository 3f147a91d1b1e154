#include "report/read/run_facts.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/parse_json.h"
#include "base/terminal/terminal.h"
#include "job/job_conditions.h"

namespace brisk {

RunFacts facts_of(const RunRecord& run) {
  RunFacts facts;
  if (const EvaluationPoint* best = run.best_evaluation()) {
    facts.best = best->metrics;
    facts.best_step = best->step;
    facts.best_seconds = best->seconds;
  }
  if (const EvaluationPoint* last = run.last_evaluation()) {
    facts.last = last->metrics;
  }
  facts.model_bytes = 4 * run.parameters;  // as it is kept and exported, in fp32
  if (!run.steps.empty()) facts.training_loss = run.steps.back().metric("loss");
  return facts;
}

double seconds_to(const RunRecord& run, const Metric& goal) {
  for (const EvaluationPoint& point : run.evaluations) {
    const double value = point.metrics.value(goal.name);
    if (goal.higher_is_better ? value >= goal.value : value <= goal.value) return point.seconds;
  }
  return kUnknown;
}

std::string facts_json(const RunRecord& run, int indent) {
  using Json = nlohmann::ordered_json;
  const RunFacts facts = facts_of(run);
  const auto text = [](const std::string& word) { return word.empty() ? Json() : Json(word); };
  const auto whole = [](double value) {
    constexpr double kExact = 9007199254740992.0;  // 2^53; damaged files may have more, and no integer holds it
    return !std::isfinite(value) ? Json() : std::abs(value) <= kExact ? Json(std::llround(value)) : Json(value);
  };
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json ledger = Json::object(), epochs = Json::array(), settings = Json::object();
  for (const auto& [phase, seconds] : run.ledger) ledger[phase] = seconds;
  for (const EpochTime& time : run.epochs) {
    Json phases = Json::object();
    for (const auto& [phase, seconds] : time.ledger) phases[phase] = seconds;
    epochs.push_back({{"epoch", time.epoch},
                      {"steps", time.steps},
                      {"tokens", time.tokens},
                      {"seconds", time.seconds},
                      {"ledger", phases}});
  }
  for (const Setting& setting : run.settings) {
    const Json value = parse_json_or_discard(setting.value);
    settings[setting.path] = value.is_discarded() ? Json(setting.value) : value;  // a path need not be UTF-8
  }
  Json best = Json::object(), last = Json::object();
  for (const Metric& metric : run.metrics) {
    best["best_validation_" + metric.name] = number(facts.best.value(metric.name));
    const Metric* found = facts.best.find(metric.name);
    if (found != nullptr && found->has_interval()) {
      best[fmt::format("best_validation_{}_interval", metric.name)] = {found->low, found->high};
    }
    last["last_validation_" + metric.name] = number(facts.last.value(metric.name));
  }
  Json json = {{"run", run.path},
               {"task", run.task},
               {"status", run.status},
               {"diverged_at", whole(run.diverged_at)},
               {"step", whole(run.step)},
               {"total_steps", whole(run.total_steps)},
               {"tokens", whole(run.tokens)},
               {"parameters", whole(run.parameters)},
               {"model_bytes", whole(facts.model_bytes)},
               {"seconds", number(run.seconds)}};
  json.update(best);
  json.update({{"best_step", whole(facts.best_step)}, {"best_seconds", number(facts.best_seconds)}});
  json.update(last);
  json.update({{"training_loss", number(facts.training_loss)},
               {"tokens_per_second", number(run.tokens_per_second)},
               {"sequences_per_second", number(run.sequences_per_second)},
               {"seconds_per_epoch", number(run.seconds_per_epoch)},
               {"gflops", number(run.gflops)},
               {"peak_gflops", number(run.peak_gflops)},
               {"utilisation", number(run.utilisation)},
               {"skipped_updates", whole(run.skipped_updates)},
               {"rollbacks", whole(run.rollbacks)},
               {"peak_memory_bytes", whole(run.peak_memory_bytes)},
               {"precision", text(run.precision)},
               {"isa", text(run.isa)},
               {"threads", whole(run.threads)},
               {"processes", run.processes.size()},
               {"evaluations", run.evaluations.size()},
               {"ledger", ledger},
               {"epochs", epochs},
               {"settings", settings},
               {"warnings", run.warnings},
               {"notes", run.notes}});
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string targets_of_task(const std::string& task) {
  const TaskTraits* traits = find_task_traits(task);
  return traits != nullptr ? traits->targets : "targets";
}

std::string metric_explanation(const Metric& metric, const std::string& task) {
  if (metric.description.empty()) return "";
  // What does not depend on tokens is of the text.
  if (metric.any_tokenizer) return metric.description + ".";
  return fmt::format("{}, of the {}.", metric.description, targets_of_task(task));
}

namespace words {

namespace {
constexpr const char* kNotKnown = "–";
}

std::string loss(double value) { return std::isfinite(value) ? fmt::format("{:.4f}", value) : kNotKnown; }

std::string metric(const Metric& metric) { return std::isfinite(metric.value) ? metric.text() : kNotKnown; }

std::string metric(const Metrics& metrics, std::string_view name) {
  const Metric* found = metrics.find(name);
  return found != nullptr ? metric(*found) : kNotKnown;
}

std::string count(double value) { return std::isfinite(value) ? format_count(value) : kNotKnown; }

std::string exact(double value) {
  if (!std::isfinite(value)) return kNotKnown;
  std::string digits = fmt::format("{:.0f}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string bytes(double value) { return std::isfinite(value) ? format_bytes(value) : kNotKnown; }
std::string duration(double seconds) { return std::isfinite(seconds) ? format_duration(seconds) : kNotKnown; }
std::string percent(double share) {
  if (!std::isfinite(share)) return kNotKnown;
  return share < 0.01 ? fmt::format("{:.2f} %", 100 * share) : fmt::format("{:.1f} %", 100 * share);
}
std::string share(double share) { return std::isfinite(share) ? fmt::format("{:.2f} %", 100 * share) : kNotKnown; }
std::string ratio(double value) { return std::isfinite(value) ? fmt::format("{:.2f}x", value) : std::string(); }
std::string rate(double value) { return std::isfinite(value) ? format_count(value) : kNotKnown; }

}  // namespace words

}  // namespace brisk
