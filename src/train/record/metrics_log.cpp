#include "train/record/metrics_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

// The shortest decimal that reads back as the same double.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// What the GPU tells: `, "gpu_busy_share": 0.98, ...`.
std::string gpu_fields(const GpuReading& gpu) {
  std::string text;
  const auto add = [&](const char* key, double value) {
    if (value >= 0) text += fmt::format(R"(, "{}": {})", key, number(value));
  };
  add("gpu_busy_share", gpu.busy_share);
  add("gpu_watts", gpu.watts);
  add("gpu_celsius", gpu.celsius);
  add("gpu_sm_mhz", gpu.sm_mhz);
  add("gpu_memory_mhz", gpu.memory_mhz);
  if (gpu.memory_used_bytes >= 0) text += fmt::format(R"(, "gpu_memory_used_bytes": {})", gpu.memory_used_bytes);
  return text;
}

Json gpu_json(const GpuSummary& gpu) {
  Json json = Json::object();
  const auto add = [&](const char* key, double value) {
    if (value >= 0) json[key] = value;
  };
  add("mean_busy_share", gpu.mean_busy_share);
  add("mean_watts", gpu.mean_watts);
  add("max_watts", gpu.max_watts);
  add("max_celsius", gpu.max_celsius);
  add("mean_sm_mhz", gpu.mean_sm_mhz);
  add("mean_memory_mhz", gpu.mean_memory_mhz);
  add("joules", gpu.joules);
  if (gpu.max_memory_used_bytes >= 0) json["max_memory_used_bytes"] = gpu.max_memory_used_bytes;
  json["readings"] = gpu.readings;
  return json;
}

}  // namespace

EvaluationMetrics evaluation_metrics(int64_t step, int64_t epoch, const EvaluationResult& result, double seconds) {
  EvaluationMetrics line{step, epoch, result.loss, result.perplexity(), result.accuracy, seconds};
  if (result.classes) {
    const auto [low, high] = result.classes->accuracy_interval();
    const ClassScores::Score macro = result.classes->macro(), weighted = result.classes->weighted();
    line.classes = {low, high, macro.f1, weighted.f1, macro.precision, macro.recall};
  }
  return line;
}

std::string to_json_line(const StepMetrics& metrics) {
  return fmt::format(R"({{"step": {}, "epoch": {}, "tokens": {}, "loss": {}, "accuracy": {}, "learning_rate": {}, )"
                     R"("gradient_norm": {}, "tokens_per_second": {}, "step_ms": {}, "seconds": {}, )"
                     R"("skipped_updates": {}, "rollbacks": {}{}{}}})",
                     metrics.step, metrics.epoch, metrics.tokens, number(metrics.loss), number(metrics.accuracy),
                     number(metrics.learning_rate), number(metrics.gradient_norm), number(metrics.tokens_per_second),
                     number(metrics.step_ms), number(metrics.seconds), metrics.skipped_updates, metrics.rollbacks,
                     metrics.loss_scale
                         ? fmt::format(R"(, "skipped_steps": {}, "loss_scale": {})", metrics.loss_scale->skipped_steps,
                                       number(metrics.loss_scale->scale))
                         : "",
                     metrics.gpu ? gpu_fields(*metrics.gpu) : "");
}

std::string to_json_line(const EvaluationMetrics& metrics) {
  if (const auto& classes = metrics.classes) {
    return fmt::format(
        R"({{"step": {}, "epoch": {}, "validation_loss": {}, "validation_accuracy": {}, )"
        R"("validation_accuracy_interval": [{}, {}], "validation_macro_f1": {}, "validation_weighted_f1": {}, )"
        R"("validation_macro_precision": {}, "validation_macro_recall": {}, "seconds": {}}})",
        metrics.step, metrics.epoch, number(metrics.validation_loss), number(metrics.validation_accuracy),
        number(classes->interval_low), number(classes->interval_high), number(classes->macro_f1),
        number(classes->weighted_f1), number(classes->macro_precision), number(classes->macro_recall),
        number(metrics.seconds));
  }
  return fmt::format(
      R"({{"step": {}, "epoch": {}, "validation_loss": {}, "validation_perplexity": {}, "validation_accuracy": {}, "seconds": {}}})",
      metrics.step, metrics.epoch, number(metrics.validation_loss), number(metrics.validation_perplexity),
      number(metrics.validation_accuracy), number(metrics.seconds));
}

void recall_metrics(const std::string& metrics_path, int64_t best_step, RunSummary& summary) {
  if (!file_exists(metrics_path)) return;
  const std::string text = read_file(metrics_path);
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const Json json = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    const auto value = [&](const char* key) {  // null: it was not finite
      return json.contains(key) && json[key].is_number() ? json[key].get<double>() : std::nan("");
    };
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) continue;
    const int64_t step = json["step"].get<int64_t>(), epoch = std::llround(value("epoch"));
    if (json.contains("validation_loss")) {
      summary.last_evaluation = EvaluationMetrics{step,
                                                  epoch,
                                                  value("validation_loss"),
                                                  value("validation_perplexity"),
                                                  value("validation_accuracy"),
                                                  value("seconds")};
      if (const auto interval = json.find("validation_accuracy_interval");
          interval != json.end() && interval->is_array() && interval->size() == 2) {
        const auto end = [&](size_t i) { return (*interval)[i].is_number() ? (*interval)[i].get<double>() : 0; };
        summary.last_evaluation->classes = EvaluationMetrics::Classes{end(0),
                                                                      end(1),
                                                                      value("validation_macro_f1"),
                                                                      value("validation_weighted_f1"),
                                                                      value("validation_macro_precision"),
                                                                      value("validation_macro_recall")};
      }
      if (step == best_step) summary.best_evaluation = summary.last_evaluation;
    } else if (json.contains("loss")) {
      summary.last_step = StepMetrics{step,
                                      epoch,
                                      std::llround(value("tokens")),
                                      value("loss"),
                                      value("accuracy"),
                                      value("learning_rate"),
                                      value("gradient_norm"),
                                      value("tokens_per_second"),
                                      value("step_ms"),
                                      value("seconds"),
                                      json.value("skipped_updates", int64_t{0}),
                                      json.value("rollbacks", int64_t{0})};
      if (json.contains("skipped_steps")) {
        summary.last_step->loss_scale =
            LossScale{.scale = value("loss_scale"), .skipped_steps = std::llround(value("skipped_steps"))};
      }
    }
  }
}

std::string summary_to_json_text(const RunSummary& summary) {
  Json json = Json::object();
  const auto merge_step = [&] {
    if (summary.last_step) json.update(Json::parse(to_json_line(*summary.last_step)));
  };
  const auto merge_evaluation = [&] {
    if (summary.last_evaluation) json.update(Json::parse(to_json_line(*summary.last_evaluation)));
  };
  const bool evaluated_last =
      !summary.last_step || !summary.last_evaluation || summary.last_evaluation->step >= summary.last_step->step;
  if (!evaluated_last) merge_evaluation();
  merge_step();
  if (evaluated_last) merge_evaluation();
  json["run_tokens_per_second"] = summary.run_tokens_per_second;
  if (summary.best_evaluation) json["best"] = Json::parse(to_json_line(*summary.best_evaluation));
  json["parameters"] = summary.parameters;
  json["model_bytes"] = summary.model_bytes;
  json["ledger"] = Json::object();
  for (const auto& [phase, seconds] : summary.ledger) json["ledger"][phase] = seconds;
  json["wall_seconds"] = summary.wall_seconds;
  json["gflops"] = summary.gflops;
  json["peak_gflops"] = summary.peak_gflops;
  json["utilisation"] = summary.utilisation;
  json["peak_memory_bytes"] = summary.peak_memory_bytes;
  if (summary.peak_allocated_bytes > 0) json["peak_allocated_bytes"] = summary.peak_allocated_bytes;
  if (summary.first_step_seconds > 0) json["first_step_seconds"] = summary.first_step_seconds;
  if (summary.gpu) {
    json["gpu"] = gpu_json(*summary.gpu);
    if (summary.tokens_per_joule > 0) json["gpu"]["tokens_per_joule"] = summary.tokens_per_joule;
  }
  json["precision"] = summary.precision;
  json["isa"] = summary.isa;
  json["device"] = summary.device;
  json["threads"] = summary.threads;
  json["skipped_updates"] = summary.skipped_updates;
  json["rollbacks"] = summary.rollbacks;
  if (summary.skipped_steps) json["skipped_steps"] = *summary.skipped_steps;
  json["ended"] = summary.ended;
  return json.dump(2) + "\n";
}

void write_summary(const std::string& path, const RunSummary& summary) {
  write_file_atomically(path, summary_to_json_text(summary));
}

bool summary_says(const std::string& path, int64_t step, const std::string& ended) {
  if (!file_exists(path)) return false;
  const Json json = Json::parse(read_file(path), nullptr, false);
  return json.is_object() && json.contains("step") && json["step"] == step && json.contains("ended") &&
         json["ended"] == ended;
}

}  // namespace brisk
