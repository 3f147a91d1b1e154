#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/terminal.h"

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

// The row of the least (or greatest) of two or more known values.
int best_row(const std::vector<double>& values, bool least) {
  int best = -1, known = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    ++known;
    const bool better = best < 0 || (least ? values[i] < values[static_cast<size_t>(best)]
                                           : values[i] > values[static_cast<size_t>(best)]);
    if (better) best = static_cast<int>(i);
  }
  return known > 1 ? best : -1;
}

}  // namespace

Comparison compare_runs(std::vector<RunRecord> runs) {
  Comparison comparison;
  comparison.runs = std::move(runs);
  comparison.labels = labels_of(comparison.runs);
  comparison.differences = differences_of(comparison.runs);
  for (const RunRecord& run : comparison.runs) {
    if (const EvaluationPoint* best = run.best_evaluation()) {
      comparison.common_loss = std::fmax(comparison.common_loss, best->loss);
    }
  }
  for (const RunRecord& run : comparison.runs) {
    comparison.seconds_to_common.push_back(seconds_to_loss(run, comparison.common_loss));
  }
  return comparison;
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
  const auto fact = [&](double RunFacts::*field) { return each(facts, field); };
  const auto run = [&](double RunRecord::*field) { return each(comparison.runs, field); };

  const std::vector<double> accuracies = fact(&RunFacts::best_accuracy);
  const bool classes =
      std::any_of(accuracies.begin(), accuracies.end(), [](double accuracy) { return std::isfinite(accuracy); });
  if (classes) {
    add("accuracy", Best::greatest, accuracies, words::accuracy);
    add("F1", Best::greatest, fact(&RunFacts::best_f1), words::accuracy);
  }
  add(classes ? "its loss" : "best loss", Best::least, fact(&RunFacts::best_loss), words::loss);
  if (!classes) add("perplexity", Best::least, fact(&RunFacts::best_perplexity), words::perplexity);
  add("at step", Best::none, fact(&RunFacts::best_step), words::exact);
  add("last loss", Best::least, fact(&RunFacts::last_loss), words::loss);
  if (std::isfinite(comparison.common_loss) && comparison.runs.size() > 1) {
    add(fmt::format("time to {:.4f}", comparison.common_loss), Best::least, comparison.seconds_to_common,
        words::duration);
  }
  add("time", Best::none, run(&RunRecord::seconds), words::duration);
  add("steps", Best::none, run(&RunRecord::step), words::exact);
  add("tokens", Best::none, run(&RunRecord::tokens), words::count);
  add("parameters", Best::none, run(&RunRecord::parameters), words::count);
  if (classes) {
    add("model size", Best::least, run(&RunRecord::parameters), [](double count) { return words::bytes(4 * count); });
  }
  add("tokens/s", Best::greatest, run(&RunRecord::tokens_per_second), words::rate);
  add("utilisation", Best::greatest, run(&RunRecord::utilisation), words::percent);
  add("peak memory", Best::least, run(&RunRecord::peak_memory_bytes), words::bytes);
  return columns;
}

std::string comparison_text(const Comparison& comparison) {
  const std::vector<ComparedColumn> columns = compared_columns(comparison);
  std::vector<Table::Column> heads = {"run", "status"};
  for (const ComparedColumn& column : columns) heads.emplace_back(column.title, Align::right);
  Table table(heads);
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    std::vector<std::string> row = {comparison.labels[i], comparison.runs[i].status};
    for (const ComparedColumn& column : columns) {
      row.push_back(column.cells[i] + (column.best == static_cast<int>(i) ? "*" : column.best >= 0 ? " " : ""));
    }
    table.add_row(std::move(row));
  }
  std::string text = table.text();
  if (comparison.runs.size() > 1) text += "* the best of its column\n";
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
      constexpr size_t kWidest = 40;  // a list of prompts would push the other runs off the screen
      row.push_back(value.size() > kWidest ? value.substr(0, kWidest - 3) + "..." : value);
    }
    settings.add_row(std::move(row));
  }
  return text + settings.text();
}

std::string comparison_json(const Comparison& comparison) {
  using Json = nlohmann::ordered_json;
  Json runs = Json::array(), differences = Json::object();
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    Json run = Json::parse(facts_json(comparison.runs[i], -1));
    run.erase("settings");
    const double seconds = comparison.seconds_to_common[i];
    run["seconds_to_common_loss"] = std::isfinite(seconds) ? Json(seconds) : Json();
    runs.push_back(std::move(run));
  }
  for (const Difference& difference : comparison.differences) {
    Json values = Json::array();
    for (const std::string& value : difference.values) {
      const Json json = Json::parse(value, nullptr, false);
      values.push_back(json.is_discarded() ? Json() : json);
    }
    differences[difference.path] = std::move(values);
  }
  const double loss = comparison.common_loss;
  const Json json = {
      {"runs", runs}, {"common_loss", std::isfinite(loss) ? Json(loss) : Json()}, {"differences", differences}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace brisk
