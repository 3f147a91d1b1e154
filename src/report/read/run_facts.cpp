#include "report/read/run_facts.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/terminal/terminal.h"

namespace brisk {

RunFacts facts_of(const RunRecord& run) {
  RunFacts facts;
  if (const EvaluationPoint* best = run.best_evaluation()) {
    facts.best_loss = best->loss;
    facts.best_perplexity = best->perplexity;
    facts.best_step = best->step;
    facts.best_seconds = best->seconds;
    facts.best_accuracy = best->accuracy;
    facts.best_accuracy_low = best->accuracy_low;
    facts.best_accuracy_high = best->accuracy_high;
    facts.best_f1 = best->macro_f1;
  }
  if (const EvaluationPoint* last = run.last_evaluation()) {
    facts.last_loss = last->loss;
    facts.last_perplexity = last->perplexity;
    facts.last_accuracy = last->accuracy;
  }
  facts.model_bytes = 4 * run.parameters;  // as it is kept and exported, in fp32
  if (!run.steps.empty()) facts.training_loss = run.steps.back().loss;
  return facts;
}

double seconds_to_loss(const RunRecord& run, double loss) {
  for (const EvaluationPoint& point : run.evaluations) {
    if (point.loss <= loss) return point.seconds;
  }
  return kUnknown;
}

double seconds_to_accuracy(const RunRecord& run, double accuracy) {
  for (const EvaluationPoint& point : run.evaluations) {
    if (point.accuracy >= accuracy) return point.seconds;
  }
  return kUnknown;
}

std::string facts_json(const RunRecord& run, int indent) {
  using Json = nlohmann::ordered_json;
  const RunFacts facts = facts_of(run);
  const auto text = [](const std::string& word) { return word.empty() ? Json() : Json(word); };
  const auto whole = [](double value) { return std::isfinite(value) ? Json(std::llround(value)) : Json(); };
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
    const Json value = Json::parse(setting.value, nullptr, false);
    settings[setting.path] = value.is_discarded() ? Json(setting.value) : value;  // a path need not be UTF-8
  }
  const Json json = {
      {"run", run.path},
      {"task", run.task},
      {"status", run.status},
      {"step", whole(run.step)},
      {"total_steps", whole(run.total_steps)},
      {"tokens", whole(run.tokens)},
      {"parameters", whole(run.parameters)},
      {"model_bytes", whole(facts.model_bytes)},
      {"seconds", number(run.seconds)},
      {"best_validation_loss", number(facts.best_loss)},
      {"best_validation_perplexity", number(facts.best_perplexity)},
      {"best_validation_accuracy", number(facts.best_accuracy)},
      {"best_validation_accuracy_interval", std::isfinite(facts.best_accuracy_low)
                                                ? Json::array({facts.best_accuracy_low, facts.best_accuracy_high})
                                                : Json()},
      {"best_validation_macro_f1", number(facts.best_f1)},
      {"best_step", whole(facts.best_step)},
      {"best_seconds", number(facts.best_seconds)},
      {"last_validation_loss", number(facts.last_loss)},
      {"last_validation_perplexity", number(facts.last_perplexity)},
      {"last_validation_accuracy", number(facts.last_accuracy)},
      {"training_loss", number(facts.training_loss)},
      {"tokens_per_second", number(run.tokens_per_second)},
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
      {"notes", run.notes}};
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

TaskWords words_of_task(const std::string& task) {
  if (task == "classify") {
    return {"Nats an example, of the class it has.", "Percent of the examples whose class is named correctly.",
            "accuracy, classes"};
  }
  if (task == "mlm") {
    return {"Nats a masked token.", "Percent of the masked tokens predicted exactly.", "accuracy, masked tokens"};
  }
  return {"Nats a token.", "Percent of the tokens predicted exactly.", "accuracy, tokens"};
}

namespace words {

namespace {
constexpr const char* kNotKnown = "–";
}

std::string loss(double value) { return std::isfinite(value) ? fmt::format("{:.4f}", value) : kNotKnown; }

std::string perplexity(double value) {
  if (!std::isfinite(value)) return kNotKnown;
  return value < 1e4 ? fmt::format("{:.2f}", value) : format_count(value);
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
std::string accuracy(double share) { return std::isfinite(share) ? fmt::format("{:.2f} %", 100 * share) : kNotKnown; }
std::string interval(double low, double high) {
  return std::isfinite(low) && std::isfinite(high) ? fmt::format("{:.2f} to {:.2f} %", 100 * low, 100 * high)
                                                   : kNotKnown;
}
std::string rate(double value) { return std::isfinite(value) ? format_count(value) : kNotKnown; }

}  // namespace words

}  // namespace brisk
