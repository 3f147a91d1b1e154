#include "train/record/metrics_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/lines.h"
#include "base/parse_json.h"

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

// As JSON: after a resume the name may be one that was read from a damaged file.
std::string key_text(const std::string& name) {
  return Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// What a GPU tells: `, "gpu_busy_share": 0.98, ...`, by another beginning of the names.
std::string gpu_fields(const GpuReading& gpu, const char* prefix = "gpu_") {
  std::string text;
  const auto add = [&](const char* key, double value) {
    if (value >= 0) text += fmt::format(R"(, "{}{}": {})", prefix, key, number(value));
  };
  add("busy_share", gpu.busy_share);
  add("watts", gpu.watts);
  add("celsius", gpu.celsius);
  add("sm_mhz", gpu.sm_mhz);
  add("memory_mhz", gpu.memory_mhz);
  if (gpu.memory_used_bytes >= 0) text += fmt::format(R"(, "{}memory_used_bytes": {})", prefix, gpu.memory_used_bytes);
  return text;
}

// `, "gpus": [{"busy_share": 0.98, ...}, ...]`.
std::string fields_of_gpus(const std::vector<GpuReading>& gpus) {
  if (gpus.empty()) return "";
  std::string all;
  for (const GpuReading& gpu : gpus) {
    const std::string fields = gpu_fields(gpu, "");
    all += fmt::format("{}{{{}}}", all.empty() ? "" : ", ", fields.empty() ? "" : fields.substr(2));
  }
  return fmt::format(R"(, "gpus": [{}])", all);
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

std::string to_json_line(const StepMetrics& metrics) {
  std::string values;
  for (const Metric& metric : metrics.metrics) {
    values += fmt::format(R"({}: {}, )", key_text(metric.name), number(metric.value));
  }
  return fmt::format(
      R"({{"step": {}, "epoch": {}, "tokens": {}, {}"learning_rate": {}, )"
      R"("gradient_norm": {}, "tokens_per_second": {}, "step_ms": {}, "seconds": {}, )"
      R"("skipped_updates": {}, "rollbacks": {}{}{}{}{}{}}})",
      metrics.step, metrics.epoch, metrics.tokens, values, number(metrics.learning_rate), number(metrics.gradient_norm),
      number(metrics.tokens_per_second), number(metrics.step_ms), number(metrics.seconds), metrics.skipped_updates,
      metrics.rollbacks,
      metrics.loss_scale ? fmt::format(R"(, "skipped_steps": {}, "loss_scale": {})", metrics.loss_scale->skipped_steps,
                                       number(metrics.loss_scale->scale))
                         : "",
      metrics.padding ? fmt::format(R"(, "padding": {})", number(*metrics.padding)) : "",
      metrics.communication
          ? fmt::format(R"(, "communication_ms": {}, "hidden_communication_ms": {})",
                        number(metrics.communication->exposed_ms), number(metrics.communication->hidden_ms))
          : "",
      metrics.gpu ? gpu_fields(*metrics.gpu) : "", fields_of_gpus(metrics.gpus));
}

std::string to_json_line(const EvaluationMetrics& evaluation) {
  std::string values;
  for (const Metric& metric : evaluation.metrics) {
    values += fmt::format(R"({}: {}, )", key_text("validation_" + metric.name), number(metric.value));
    if (!metric.has_interval()) continue;
    values += fmt::format(R"({}: [{}, {}], )", key_text("validation_" + metric.name + "_interval"), number(metric.low),
                          number(metric.high));
  }
  return fmt::format(R"({{"step": {}, "epoch": {}, {}"seconds": {}}})", evaluation.step, evaluation.epoch, values,
                     number(evaluation.seconds));
}

void recall_metrics(const std::string& metrics_path, const Metrics& kinds, int64_t best_step, RunSummary& summary) {
  for_each_log_line(metrics_path, [&](const LogLine& line) {
    if (!line.ended || line.too_long) return;
    const Json json = parse_json_or_discard(line.text, kLogLineJson);
    const auto value = [&](const char* key) {  // null: it was not finite
      return json.contains(key) && json[key].is_number() ? json[key].get<double>() : std::nan("");
    };
    const auto count = [&](const char* key) {
      return json.contains(key) && json[key].is_number_integer() ? json[key].get<int64_t>() : 0;
    };
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return;
    const int64_t step = json["step"].get<int64_t>(), epoch = std::llround(value("epoch"));
    if (Metrics metrics = metrics_of_line(json, kinds); !metrics.empty()) {
      summary.last_evaluation = EvaluationMetrics{step, epoch, std::move(metrics), value("seconds")};
      if (step == best_step) summary.best_evaluation = summary.last_evaluation;
    } else if (json.contains("loss")) {
      summary.last_step = StepMetrics{step,
                                      epoch,
                                      std::llround(value("tokens")),
                                      metrics_of_step_line(json, kinds),
                                      value("learning_rate"),
                                      value("gradient_norm"),
                                      value("tokens_per_second"),
                                      value("step_ms"),
                                      value("seconds"),
                                      count("skipped_updates"),
                                      count("rollbacks")};
      if (json.contains("padding")) summary.last_step->padding = value("padding");
      if (json.contains("skipped_steps")) {
        summary.last_step->loss_scale =
            LossScale{.scale = value("loss_scale"), .skipped_steps = std::llround(value("skipped_steps"))};
      }
    }
  });
}

std::string summary_to_json_text(const RunSummary& summary) {
  Json json = Json::object();
  const auto merge_step = [&] {
    if (summary.last_step) json.update(parse_own_json(to_json_line(*summary.last_step)));
  };
  const auto merge_evaluation = [&] {
    if (summary.last_evaluation) json.update(parse_own_json(to_json_line(*summary.last_evaluation)));
  };
  const bool evaluated_last =
      !summary.last_step || !summary.last_evaluation || summary.last_evaluation->step >= summary.last_step->step;
  if (!evaluated_last) merge_evaluation();
  merge_step();
  if (evaluated_last) merge_evaluation();
  json["run_tokens_per_second"] = summary.run_tokens_per_second;
  json["sequences_per_second"] = summary.sequences_per_second;
  if (summary.padding) json["padding"] = *summary.padding;
  if (summary.best_evaluation) {
    json["best"] = parse_own_json(to_json_line(*summary.best_evaluation));
    json["best_by"] = summary.best_by;
  }
  json["parameters"] = summary.parameters;
  json["model_bytes"] = summary.model_bytes;
  const auto ledger_of = [](const auto& ledger) {
    Json phases = Json::object();
    for (const auto& [phase, seconds] : ledger) phases[phase] = seconds;
    return phases;
  };
  json["ledger"] = ledger_of(summary.ledger);
  json["wall_seconds"] = summary.wall_seconds;
  json["processes"] = summary.processes;
  json["world_size"] = summary.world_size;
  for (size_t rank = 0; rank < summary.ranks.size(); ++rank) {
    const RunSummary::RankFigures& figures = summary.ranks[rank];
    json["ranks"].push_back({{"rank", rank},
                             {"host", figures.host},
                             {"communication_seconds", figures.communication_seconds},
                             {"hidden_communication_seconds", figures.hidden_communication_seconds},
                             {"work_seconds", figures.work_seconds},
                             {"bytes_sent", figures.bytes_sent},
                             {"peak_memory_bytes", figures.peak_memory_bytes}});
    if (figures.gpu) json["ranks"].back()["gpu"] = gpu_json(*figures.gpu);
  }
  if (summary.slow_rank) {
    json["slow_rank"] = {
        {"rank", summary.slow_rank->rank}, {"host", summary.slow_rank->host}, {"times", summary.slow_rank->times}};
  }
  json["gflops"] = summary.gflops;
  json["peak_gflops"] = summary.peak_gflops;
  json["utilisation"] = summary.utilisation;
  json["peak_memory_bytes"] = summary.peak_memory_bytes;
  if (summary.peak_allocated_bytes > 0) json["peak_allocated_bytes"] = summary.peak_allocated_bytes;
  if (summary.peak_own_bytes > 0) json["peak_own_bytes"] = summary.peak_own_bytes;
  if (summary.planned_memory_bytes > 0) json["planned_memory_bytes"] = summary.planned_memory_bytes;
  Json last = Json::object();
  if (summary.first_step_seconds > 0) last["first_step_seconds"] = summary.first_step_seconds;
  if (summary.gpu) {
    last["gpu"] = gpu_json(*summary.gpu);
    if (summary.tokens_per_joule > 0) last["gpu"]["tokens_per_joule"] = summary.tokens_per_joule;
  }
  if (summary.processes > 1) {
    last["wall_seconds"] = summary.process_wall_seconds;
    last["tokens_per_second"] = summary.process_tokens_per_second;
    last["utilisation"] = summary.process_utilisation;
    last["ledger"] = ledger_of(summary.process_ledger);
    json["last_process"] = std::move(last);
  } else {
    json.update(last);
  }
  json["precision"] = summary.precision;
  json["isa"] = summary.isa;
  json["device"] = summary.device;
  json["threads"] = summary.threads;
  json["skipped_updates"] = summary.skipped_updates;
  json["rollbacks"] = summary.rollbacks;
  if (summary.skipped_steps) json["skipped_steps"] = *summary.skipped_steps;
  json["checkpoints_saved"] = summary.checkpoints_saved;
  json["checkpoint_write_seconds"] = summary.checkpoint_write_seconds;
  for (const auto& [key, fingerprint] : summary.fingerprints) json[key] = fingerprint;
  json["ended"] = summary.ended;
  if (summary.diverged_at > 0) json["diverged_at"] = summary.diverged_at;
  json["warnings"] = summary.warnings;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_summary(const std::string& path, const RunSummary& summary) {
  write_file_atomically(path, summary_to_json_text(summary));
}

bool summary_says(const std::string& path, int64_t step, const std::string& ended) {
  if (!file_exists(path)) return false;
  const Json json = parse_json_or_discard(read_file(path, file_kind::summary), kLogLineJson);
  return json.is_object() && json.contains("step") && json["step"] == step && json.contains("ended") &&
         json["ended"] == ended;
}

}  // namespace brisk
