#include "report/page/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/metrics.h"
#include "base/parse_json.h"
#include "base/terminal/terminal.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

constexpr const char* kNone = "–";

std::vector<std::string> labels_of(const std::vector<RunRecord>& runs) {
  std::map<std::string, int> times;
  for (const RunRecord& run : runs) ++times[run.name];
  std::vector<std::string> labels;
  for (const RunRecord& run : runs) labels.push_back(times[run.name] == 1 ? run.name : run.path);
  return labels;
}

std::vector<Difference> differences_of(const std::vector<RunRecord>& runs) {
  std::vector<std::string> paths;  // in the order of the declarations
  std::set<std::string> seen;
  std::vector<std::map<std::string, std::string>> values(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const Setting& setting : runs[i].settings) {
      values[i][setting.path] = setting.value;
      if (seen.insert(setting.path).second) paths.push_back(setting.path);
    }
  }
  std::vector<Difference> differences;
  for (const std::string& path : paths) {
    if (path == "name" || path == "output" || path == "comment") continue;  // they always do
    Difference difference{path, {}};
    for (const auto& of_run : values) difference.values.push_back(of_run.contains(path) ? of_run.at(path) : kNone);
    const auto& all = difference.values;
    if (std::any_of(all.begin(), all.end(), [&](const std::string& value) { return value != all.front(); })) {
      differences.push_back(std::move(difference));
    }
  }
  return differences;
}

template <typename Record>
std::vector<double> each(const std::vector<Record>& records, double Record::*field) {
  std::vector<double> values;
  for (const Record& record : records) values.push_back(record.*field);
  return values;
}

// The row of the least (or greatest) of two or more known values; none if two have it.
int best_row(const std::vector<double>& values, bool least) {
  std::vector<double> known;
  std::copy_if(values.begin(), values.end(), std::back_inserter(known),
               [](double value) { return std::isfinite(value); });
  if (known.size() < 2) return -1;
  const auto [lowest, highest] = std::minmax_element(known.begin(), known.end());
  const double best = least ? *lowest : *highest;
  if (std::count(values.begin(), values.end(), best) > 1) return -1;
  return static_cast<int>(std::find(values.begin(), values.end(), best) - values.begin());
}

size_t first_known(const std::vector<double>& values) {
  return static_cast<size_t>(
      std::find_if(values.begin(), values.end(), [](double value) { return std::isfinite(value); }) - values.begin());
}

// That by which all the runs chose their best model; else the loss, which all of them have. Where their tokens differ,
// one that does not depend on them.
Metric common_metric(const std::vector<RunRecord>& runs, const Comparability& can) {
  if (!can.same_tokens) {
    for (const Metric& metric : runs.front().metrics) {
      if (metric.any_tokenizer) return metric;
    }
  }
  const auto same = [&](const RunRecord& run) { return run.best_by == runs.front().best_by; };
  const Metric* metric = !runs.empty() && std::all_of(runs.begin(), runs.end(), same)
                             ? runs.front().metrics.find(runs.front().best_by)
                             : nullptr;
  return metric != nullptr ? *metric : standard_metric("loss");
}

// Whether the best of the runs is better than chance would have it.
bool is_told_apart(const std::vector<RunRecord>& runs, const std::vector<double>& values, const Metric& metric) {
  const auto known = std::count_if(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  if (known < 2) return true;
  const int best = best_row(values, !metric.higher_is_better);
  return best >= 0 ? stands_out(runs, static_cast<size_t>(best)) : stands_out(runs, first_known(values));
}

// Each with columns of its own: a class named and a masked word guessed are different things.
std::vector<std::string> tasks_of(const std::vector<RunRecord>& runs) {
  std::vector<std::string> tasks;
  for (const RunRecord& run : runs) {
    if (std::find(tasks.begin(), tasks.end(), run.task) == tasks.end()) tasks.push_back(run.task);
  }
  return tasks;
}

}  // namespace

Comparison compare_runs(std::vector<RunRecord> runs) {
  Comparison comparison;
  comparison.runs = std::move(runs);
  comparison.labels = labels_of(comparison.runs);
  comparison.differences = differences_of(comparison.runs);
  comparison.can = comparability_of(comparison.runs);
  comparison.warnings = comparison.can.reasons;
  comparison.common = common_metric(comparison.runs, comparison.can);
  Metric& common = comparison.common;
  std::vector<double> best;
  for (const RunRecord& run : comparison.runs) {
    best.push_back(run.best_evaluation() == nullptr ? kUnknown : run.best_evaluation()->metrics.value(common.name));
    if (!comparison.can.compares(common) || std::isnan(best.back())) continue;
    common.value =
        common.higher_is_better ? std::fmin(common.value, best.back()) : std::fmax(common.value, best.back());
  }
  if (std::isfinite(common.value) && !is_told_apart(comparison.runs, best, common)) {
    comparison.warnings.emplace_back(
        "the runs lie within each other's 95 % intervals: more validation data would tell which is better");
    common.value = kUnknown;
  }
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    for (const std::string& warning : comparison.runs[i].warnings)
      comparison.warnings.push_back(fmt::format("{}: {}", comparison.labels[i], warning));
  }
  for (const RunRecord& run : comparison.runs) comparison.seconds_to_common.push_back(seconds_to(run, common));
  return comparison;
}

std::vector<Metric> metrics_of_all(const Comparison& comparison) {
  Metrics all;
  for (const RunRecord& run : comparison.runs) {
    for (const Metric& metric : run.metrics.shown(comparison.common.name)) {
      if (all.find(metric.name) == nullptr) all.add(metric);
    }
  }
  return all.shown(comparison.common.name);
}

std::vector<ComparedColumn> compared_columns(const Comparison& comparison) {
  enum class Best { none, least, greatest };
  std::vector<ComparedColumn> columns;
  std::vector<RunFacts> facts;
  for (const RunRecord& run : comparison.runs) facts.push_back(facts_of(run));
  const auto add = [&](std::string title, Best best, const std::vector<double>& values, const auto& words_of) {
    ComparedColumn column{std::move(title), {}, -1};
    for (const double value : values) column.cells.push_back(words_of(value));
    if (best != Best::none) column.best = best_row(values, best == Best::least);
    columns.push_back(std::move(column));
  };
  const auto add_with_ratio = [&](std::string title, Best best, const std::vector<double>& values,
                                  const auto& words_of) {
    add(std::move(title), best, values, words_of);
    if (values.size() == 2) columns.back().ratio = words::ratio(values[1] / values[0]);
  };
  // The best in a metric of quality: only where it can be compared, and stands out.
  const auto best_quality = [&](const std::vector<double>& values, const Metric& metric) {
    const int best = comparison.can.compares(metric) ? best_row(values, !metric.higher_is_better) : -1;
    return best >= 0 && stands_out(comparison.runs, static_cast<size_t>(best)) ? best : -1;
  };
  const auto fact = [&](double RunFacts::*field) { return each(facts, field); };
  const auto run = [&](double RunRecord::*field) { return each(comparison.runs, field); };

  const std::vector<std::string> tasks = tasks_of(comparison.runs);
  const bool same_task = comparison.can.same_task;
  if (!same_task) {
    columns.push_back({"task", {}, -1});
    for (const RunRecord& of : comparison.runs) columns.back().cells.push_back(of.task);
  }
  const Metric& common = comparison.common;
  for (const Metric& metric : metrics_of_all(comparison)) {
    for (const std::string& task : tasks) {
      ComparedColumn column{metric.name == common.name ? "best " + metric.title() : metric.title(), {}, -1};
      ComparedColumn intervals{"95 % interval", {}, -1};
      std::vector<double> values;
      bool known = false, has_intervals = false;
      for (size_t i = 0; i < facts.size(); ++i) {
        const Metric* best = comparison.runs[i].task == task ? facts[i].best.find(metric.name) : nullptr;
        const bool has_interval = best != nullptr && best->has_interval();
        values.push_back(best != nullptr ? best->value : kUnknown);
        column.cells.push_back(best != nullptr ? words::metric(*best) : kNone);
        intervals.cells.push_back(has_interval ? best->interval_text() : kNone);
        known = known || best != nullptr;
        has_intervals = has_intervals || has_interval;
      }
      column.best = best_quality(values, metric);
      if (!same_task) {
        if (!known) continue;
        column.title = fmt::format("{}, {}", metric.title(), targets_of_task(task));
      }
      columns.push_back(std::move(column));
      if (has_intervals) columns.push_back(std::move(intervals));
    }
  }
  add("at step", Best::none, fact(&RunFacts::best_step), words::exact);
  if (same_task) {
    columns.push_back({"last " + common.title(), {}, -1});
    std::vector<double> last;
    for (const RunFacts& of : facts) {
      last.push_back(of.last.value(common.name));
      columns.back().cells.push_back(words::metric(of.last, common.name));
    }
    columns.back().best = best_quality(last, common);
  }
  if (comparison.runs.size() > 1 && std::isfinite(common.value)) {
    add_with_ratio(fmt::format("time to {} {}", common.title(), common.text()), Best::least,
                   comparison.seconds_to_common, words::duration);
  }
  add_with_ratio("time", Best::none, run(&RunRecord::seconds), words::duration);
  add_with_ratio("time per epoch", Best::none, run(&RunRecord::seconds_per_epoch), words::duration);
  add_with_ratio("steps", Best::none, run(&RunRecord::step), words::exact);
  add_with_ratio("tokens", Best::none, run(&RunRecord::tokens), words::count);
  add_with_ratio("parameters", Best::none, run(&RunRecord::parameters), words::count);
  add_with_ratio("model size", Best::least, fact(&RunFacts::model_bytes), words::bytes);
  // A tokenizer that makes more of a text has more tokens a second.
  add_with_ratio("tokens/s", comparison.can.same_speed_unit ? Best::greatest : Best::none,
                 run(&RunRecord::tokens_per_second), words::rate);
  add_with_ratio("sequences/s", Best::none, run(&RunRecord::sequences_per_second), words::rate);
  add("utilisation", Best::greatest, run(&RunRecord::utilisation), words::percent);
  add_with_ratio("peak memory", Best::least, run(&RunRecord::peak_memory_bytes), words::bytes);
  return columns;
}

namespace {

// A column for each of a few runs, which fits a terminal; a row for each of many.
std::string figures_text(const Comparison& comparison) {
  constexpr size_t kFew = 4;
  const std::vector<ComparedColumn> columns = compared_columns(comparison);
  const auto cell = [](const ComparedColumn& column, size_t run) {
    return column.cells[run] + (column.best == static_cast<int>(run) ? "*" : column.best >= 0 ? " " : "");
  };
  if (comparison.runs.size() <= kFew) {
    std::vector<Table::Column> heads = {""};
    std::vector<std::string> statuses = {"status"};
    for (size_t i = 0; i < comparison.runs.size(); ++i) {
      heads.emplace_back(comparison.labels[i], Align::right);
      statuses.push_back(comparison.runs[i].status_text());
    }
    if (comparison.runs.size() == 2) heads.emplace_back("second / first", Align::right);
    Table table(heads);
    table.add_row(std::move(statuses));
    for (const ComparedColumn& column : columns) {
      std::vector<std::string> row = {column.title};
      for (size_t i = 0; i < comparison.runs.size(); ++i) row.push_back(cell(column, i));
      if (comparison.runs.size() == 2) row.push_back(column.ratio);
      table.add_row(std::move(row));
    }
    return table.text();
  }
  std::vector<Table::Column> heads = {"run", "status"};
  for (const ComparedColumn& column : columns) heads.emplace_back(column.title, Align::right);
  Table table(heads);
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    std::vector<std::string> row = {comparison.labels[i], comparison.runs[i].status_text()};
    for (const ComparedColumn& column : columns) row.push_back(cell(column, i));
    table.add_row(std::move(row));
  }
  return table.text();
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  std::string text = figures_text(comparison);
  if (comparison.runs.size() > 1) text += "* the best of its kind\n";
  for (const std::string& warning : comparison.warnings)
    text += fmt::format("warning: {}\n", without_controls(warning));
  text += "\n";
  if (comparison.differences.empty()) {
    return text + (comparison.runs.size() > 1 ? "all settings are the same\n" : "");
  }
  std::vector<Table::Column> names = {"setting"};
  for (const std::string& label : comparison.labels) names.emplace_back(label, Align::right);
  Table settings(names);
  for (const Difference& difference : comparison.differences) {
    std::vector<std::string> row = {difference.path};
    for (const std::string& value : difference.values) {
      row.push_back(printable(value, 40));  // a list of prompts would push the other runs off the screen
    }
    settings.add_row(std::move(row));
  }
  return text + settings.text();
}

std::string comparison_json(const Comparison& comparison) {
  using Json = nlohmann::ordered_json;
  const auto known = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json runs = Json::array(), differences = Json::object();
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    Json run = parse_own_json(facts_json(comparison.runs[i], -1));
    run.erase("settings");
    const double seconds = comparison.seconds_to_common[i];
    run["seconds_to_common_" + comparison.common.name] = known(seconds);
    runs.push_back(std::move(run));
  }
  for (const Difference& difference : comparison.differences) {
    Json values = Json::array();
    for (const std::string& value : difference.values) {
      const Json json = parse_json_or_discard(value);
      values.push_back(json.is_discarded() ? Json() : json);
    }
    differences[difference.path] = std::move(values);
  }
  const Json json = {{"runs", runs},
                     {"comparable", comparison.can.compares(comparison.common)},
                     {"warnings", comparison.warnings},
                     {"common_" + comparison.common.name, known(comparison.common.value)},
                     {"differences", differences}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace brisk
