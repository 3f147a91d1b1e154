#include "base/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<MetricFormat, const char*>, 3> kFormatNames = {
    {{MetricFormat::number, "number"}, {MetricFormat::wide_number, "wide_number"}, {MetricFormat::percent, "percent"}}};

constexpr std::string_view kPrefix = "validation_", kInterval = "_interval";

const Metrics& standard_metrics() {
  static const Metrics all = {
      {.name = "loss", .description = "Mean cross-entropy in nats"},
      {.name = "perplexity", .format = MetricFormat::wide_number, .description = "The exponential of the loss"},
      {.name = "bits_per_byte",
       .label = "bits per byte",
       .description = "Loss in bits over the bytes of the text, the same for any tokenizer",
       .any_tokenizer = true},
      {.name = "accuracy",
       .higher_is_better = true,
       .format = MetricFormat::percent,
       .description = "Percent predicted correctly"},
      {.name = "macro_f1",
       .higher_is_better = true,
       .format = MetricFormat::percent,
       .label = "macro F1",
       .short_name = "f1",
       .description = "Harmonic mean of precision and recall, each class counting the same"},
      {.name = "weighted_f1",
       .higher_is_better = true,
       .format = MetricFormat::percent,
       .label = "weighted F1",
       .secondary = true},
      {.name = "macro_precision",
       .higher_is_better = true,
       .format = MetricFormat::percent,
       .label = "macro precision",
       .short_name = "precision",
       .secondary = true},
      {.name = "macro_recall",
       .higher_is_better = true,
       .format = MetricFormat::percent,
       .label = "macro recall",
       .short_name = "recall",
       .secondary = true},
      {.name = "weighted_precision",
       .higher_is_better = true,
       .format = MetricFormat::percent,
       .label = "weighted precision",
       .secondary = true},
      {.name = "weighted_recall",
       .higher_is_better = true,
       .format = MetricFormat::percent,
       .label = "weighted recall",
       .secondary = true}};
  return all;
}

// Without its unit.
std::string figure(MetricFormat format, double value) {
  switch (format) {
    case MetricFormat::number: return fmt::format("{:.4f}", value);
    case MetricFormat::wide_number:
      return std::abs(value) < 1e6 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value);
    case MetricFormat::percent: return fmt::format("{:.2f}", 100 * value);
  }
  return "";
}

const char* unit(MetricFormat format) { return format == MetricFormat::percent ? " %" : ""; }

double number_or_none(const Json& value) { return value.is_number() ? value.get<double>() : Metric::kNone; }

}  // namespace

bool Metric::has_interval() const { return std::isfinite(low) && std::isfinite(high); }

std::string Metric::text() const { return figure(format, value) + unit(format); }

std::string Metric::interval_text() const {
  return fmt::format("{} to {}{}", figure(format, low), figure(format, high), unit(format));
}

const Metric* Metrics::find(std::string_view name) const {
  const auto found =
      std::find_if(list_.begin(), list_.end(), [&](const Metric& m) { return m.name == name || m.short_name == name; });
  if (found != list_.end()) return &*found;
  // As others write it: "eval_f1", "Macro-F1", "f1_macro".
  std::string plain;
  for (const char c : name) {
    plain += c == '-' || c == ' ' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  for (const std::string_view prefix : {"eval_", "validation_", "val_"}) {
    if (plain.starts_with(prefix)) return find(std::string_view(plain).substr(prefix.size()));
  }
  for (const std::string_view mean : {"macro", "weighted"}) {
    const size_t length = plain.size() - std::min(plain.size(), mean.size() + 1);
    if (length > 0 && plain[length] == '_' && plain.ends_with(mean))
      return find(fmt::format("{}_{}", mean, plain.substr(0, length)));
  }
  return plain == name ? nullptr : find(plain);
}

double Metrics::value(std::string_view name) const {
  const Metric* metric = find(name);
  return metric == nullptr ? Metric::kNone : metric->value;
}

std::vector<Metric> Metrics::shown(std::string_view first) const {
  std::vector<Metric> shown;
  const Metric* leading = find(first);
  if (leading != nullptr) shown.push_back(*leading);
  for (const Metric& metric : list_) {
    if (&metric != leading && !metric.secondary) shown.push_back(metric);
  }
  return shown;
}

std::string Metrics::names() const {
  std::string text;
  for (const Metric& metric : list_) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", metric.name,
                        metric.short_name.empty() ? "" : fmt::format(" (or {})", metric.short_name));
  }
  return text;
}

Metric standard_metric(std::string_view name, double value) {
  const Metrics& known = standard_metrics();
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const Metric& metric) { return metric.name == name; });
  Metric metric =
      found != known.end() ? *found : Metric{.name = std::string(name), .higher_is_better = !name.ends_with("loss")};
  metric.value = value;
  return metric;
}

bool better(const Metrics& a, const Metrics& b, std::string_view by) {
  const double loss = a.value("loss"), other_loss = b.value("loss");
  if (a.find("loss") != nullptr && !std::isfinite(loss)) return false;
  const Metric* metric = a.find(by);
  const double value = metric != nullptr ? metric->value : Metric::kNone, other = b.value(by);
  if (std::isfinite(value) != std::isfinite(other)) return std::isfinite(value);
  if (std::isfinite(value) && value != other) return metric->higher_is_better ? value > other : value < other;
  return loss < other_loss || (std::isfinite(loss) && !std::isfinite(other_loss));
}

std::string metrics_text(const Metrics& metrics, std::string_view first) {
  std::string text;
  for (const Metric& metric : metrics.shown(first)) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", metric.title(), metric.text(),
                        metric.has_interval() ? fmt::format(" (95 %: {})", metric.interval_text()) : "");
  }
  return text;
}

Json metric_kinds_to_json(const Metrics& metrics) {
  Json list = Json::array();
  for (const Metric& metric : metrics) {
    const auto* const format = std::find_if(kFormatNames.begin(), kFormatNames.end(),
                                            [&](const auto& entry) { return entry.first == metric.format; });
    list.push_back({{"name", metric.name}, {"higher_is_better", metric.higher_is_better}, {"format", format->second}});
    Json& kind = list.back();
    if (!metric.label.empty()) kind["label"] = metric.label;
    if (!metric.short_name.empty()) kind["short_name"] = metric.short_name;
    if (!metric.description.empty()) kind["description"] = metric.description;
    if (metric.any_tokenizer) kind["any_tokenizer"] = true;
    if (metric.secondary) kind["secondary"] = true;
  }
  return list;
}

Metrics metric_kinds_from_json(const Json& json) {
  Metrics metrics;
  constexpr size_t kMost = 100;  // of a damaged file: each is compared with the others
  if (!json.is_array() || json.size() > kMost) return metrics;
  for (const Json& kind : json) {
    const auto text = [&](const char* key) {
      return kind.contains(key) && kind[key].is_string() ? kind[key].get<std::string>() : std::string();
    };
    const auto flag = [&](const char* key) { return kind.contains(key) && kind[key] == true; };
    if (!kind.is_object() || text("name").empty() || metrics.find(text("name")) != nullptr) continue;
    const auto* const format = std::find_if(kFormatNames.begin(), kFormatNames.end(),
                                            [&](const auto& entry) { return entry.second == text("format"); });
    metrics.add({.name = text("name"),
                 .higher_is_better = flag("higher_is_better"),
                 .format = format == kFormatNames.end() ? MetricFormat::number : format->first,
                 .label = text("label"),
                 .short_name = text("short_name"),
                 .description = text("description"),
                 .any_tokenizer = flag("any_tokenizer"),
                 .secondary = flag("secondary")});
  }
  return metrics;
}

Metrics metrics_of_step_line(const Json& line, const Metrics& kinds) {
  Metrics metrics;
  for (const auto& [key, value] : line.items()) {
    const Metric* kind = kinds.find(key);
    if (kind == nullptr && key != "loss" && key != "accuracy") continue;
    Metric metric = kind != nullptr ? *kind : standard_metric(key);
    metric.value = number_or_none(value);
    metrics.add(std::move(metric));
  }
  return metrics;
}

Metrics metrics_of_line(const Json& line, const Metrics& kinds) {
  Metrics metrics;
  if (!line.is_object()) return metrics;
  for (const auto& [key, value] : line.items()) {
    if (!key.starts_with(kPrefix) || !(value.is_number() || value.is_null())) continue;
    const std::string name = key.substr(kPrefix.size());
    const Metric* kind = kinds.find(name);
    Metric metric = kind != nullptr ? *kind : standard_metric(name);
    metric.value = number_or_none(value);
    metric.low = metric.high = Metric::kNone;
    const auto ends = line.find(key + std::string(kInterval));
    if (ends != line.end() && ends->is_array() && ends->size() == 2) {
      metric.low = number_or_none((*ends)[0]);
      metric.high = number_or_none((*ends)[1]);
    }
    metrics.add(std::move(metric));
  }
  return metrics;
}

}  // namespace brisk
