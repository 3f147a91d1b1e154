#include "train/run/compare_baseline.h"

#include <fmt/format.h>

#include <cmath>

#include "base/terminal/terminal.h"

namespace brisk {

namespace {

std::string times(double now, double before) {
  return before > 0 && now > 0 ? fmt::format("{:.2f}x", now / before) : "";
}

// "better", "worse", or that the two cannot be told apart.
std::string quality(const BaselineOptions& baseline, const Metric& metric) {
  const bool has_interval = baseline.high > baseline.low;
  if (has_interval && metric.value >= baseline.low && metric.value <= baseline.high)
    return "the same, within the interval";
  if (metric.value == baseline.value) return "the same";
  return (metric.value > baseline.value) == metric.higher_is_better ? "better" : "worse";
}

}  // namespace

std::string baseline_table(const BaselineOptions& baseline, const BaselineComparison& now) {
  Table table({"compared", {"before", Align::right}, {"this run", Align::right}, "ratio"});
  table.add_row({"tokens/s", format_count(baseline.tokens_per_second), format_count(now.tokens_per_second),
                 times(now.tokens_per_second, baseline.tokens_per_second)});
  if (baseline.epoch_seconds > 0 && now.epoch_seconds > 0) {
    table.add_row({"time per epoch", format_duration(baseline.epoch_seconds), format_duration(now.epoch_seconds),
                   times(baseline.epoch_seconds, now.epoch_seconds)});
  }
  if (const Metric* metric = now.best.find(baseline.metric); metric != nullptr && !baseline.metric.empty()) {
    Metric before = *metric;
    before.value = baseline.value;
    before.low = baseline.low;
    before.high = baseline.high;
    const bool has_interval = baseline.high > baseline.low;
    table.add_row({"best " + metric->title(),
                   has_interval ? fmt::format("{} ({})", before.text(), before.interval_text()) : before.text(),
                   metric->text(), quality(baseline, *metric)});
  }
  return fmt::format("beside {}:\n{}", baseline.job.empty() ? "the job before" : baseline.job, table.text());
}

}  // namespace brisk
