#include "report/read/class_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/files/files.h"
#include "base/parse_json.h"
#include "report/page/html.h"
#include "report/read/run_facts.h"

namespace brisk {

namespace {

double figure(const nlohmann::json& json, const std::string& key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : kUnknown;
}

std::string label_in(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

ClassResults::Score score_in(const nlohmann::json& json, const std::string& prefix) {
  return {figure(json, prefix + "precision"), figure(json, prefix + "recall"), figure(json, prefix + "f1")};
}

// A matrix, or of many classes a list of what occurs (infer/answer/class_scores.h).
void read_confusions(const nlohmann::json& json, ClassResults& results) {
  if (!json.is_array()) return;
  std::map<std::string, size_t> place;
  for (size_t i = 0; i < results.classes.size(); ++i) place[results.classes[i].label] = i;
  for (size_t row = 0; row < json.size(); ++row) {
    if (json[row].is_object()) {
      const auto label = place.find(label_in(json[row], "label"));
      const auto predicted = place.find(label_in(json[row], "predicted"));
      const double count = figure(json[row], "examples");
      if (label == place.end() || predicted == place.end() || !(count > 0)) continue;
      results.confusions.push_back({label->second, predicted->second, count});
      continue;
    }
    if (!json[row].is_array() || row >= results.classes.size()) continue;
    for (size_t column = 0; column < std::min(json[row].size(), results.classes.size()); ++column) {
      if (!json[row][column].is_number() || json[row][column] <= 0) continue;
      results.confusions.push_back({row, column, json[row][column].get<double>()});
    }
  }
}

Html class_table_section(const ClassResults& results) {
  constexpr size_t kShown = 20;
  std::vector<size_t> order(results.classes.size());
  std::iota(order.begin(), order.end(), 0);
  if (order.size() > kShown) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return results.classes[a].examples > results.classes[b].examples; });
  }
  const std::vector<Html> header = {"class", "examples", "named so", "precision", "recall", "F1"};
  HtmlTable first{header, {}, true}, rest{header, {}, true};
  const auto row = [](const Html& name, double examples, double predictions, const ClassResults::Score& score) {
    return std::vector<Html>{name,
                             words::exact(examples),
                             words::exact(predictions),
                             words::share(score.precision),
                             words::share(score.recall),
                             words::share(score.f1)};
  };
  constexpr size_t kMost = 2000;  // on a page
  for (size_t i = 0; i < std::min(kMost, order.size()); ++i) {
    const ClassResults::Class& item = results.classes[order[i]];
    (i < kShown ? first : rest).rows.push_back(row(item.label, item.examples, item.predictions, item.score));
  }
  for (const auto& [name, score] :
       {std::pair("mean of classes (macro)", results.macro), std::pair("weighted mean", results.weighted)}) {
    first.rows.push_back(row(html("<b>{}</b>", name), results.examples, results.examples, score));
  }
  return html_section(
      "Classes",
      fmt::format(
          "Of the best evaluation: {} examples, {} of them classified correctly. Precision: the share of the "
          "predictions of a class that are right. Recall: the share of the examples of a class that were found. F1: "
          "their harmonic mean.",
          words::exact(results.examples), words::share(results.accuracy)),
      html_table(first) +
          (rest.rows.empty()
               ? Html()
               : html("<details><summary>{} rarer classes{}</summary>\n{}</details>\n", order.size() - kShown,
                      order.size() > kMost ? ", the first of them" : "", html_table(rest))));
}

Html matrix_html(const ClassResults& results) {
  HtmlTable table{{"label \\ predicted"}, {}, true};
  for (const auto& item : results.classes) table.header.push_back(item.label);
  std::map<std::pair<size_t, size_t>, double> count;
  for (const auto& item : results.confusions) count[{item.label, item.predicted}] += item.examples;
  for (size_t label = 0; label < results.classes.size(); ++label) {
    std::vector<Html> row = {results.classes[label].label};
    for (size_t named = 0; named < results.classes.size(); ++named) {
      const auto found = count.find({label, named});
      const double examples = found == count.end() ? 0 : found->second;
      const double all = results.classes[label].examples, share = all > 0 ? std::min(1.0, examples / all) : 0;
      row.push_back(
          html("<span class=\"heat {}\" style=\"--share:{:.3f}\" title=\"{} of this label's examples\">{}</span>",
               label == named ? "right" : "wrong", share, words::share(share), words::exact(examples)));
    }
    table.rows.push_back(std::move(row));
  }
  return html_table(table);
}

Html mistakes_html(const ClassResults& results) {
  constexpr size_t kMost = 30;
  std::vector<ClassResults::Confusion> mistakes = results.confusions;
  std::erase_if(mistakes, [](const auto& item) { return item.label == item.predicted; });
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const auto& a, const auto& b) { return a.examples > b.examples; });
  if (mistakes.empty()) return html("<p>None.</p>\n");
  mistakes.resize(std::min(mistakes.size(), kMost));
  HtmlTable table{{"label", "named", "examples"}, {}, true};
  for (const auto& item : mistakes) {
    table.rows.push_back(
        {results.classes[item.label].label, results.classes[item.predicted].label, words::exact(item.examples)});
  }
  return html_table(table);
}

Html confusion_section(const ClassResults& results) {
  constexpr size_t kMatrix = 20;  // more columns are a carpet
  if (results.classes.size() <= kMatrix) {
    return html_section("What was taken for what",
                        "The confusion matrix: a row for each label, a column for what it was named. The darker, the "
                        "larger the share of its row.",
                        matrix_html(results));
  }
  return html_section("What was taken for what", "The most frequent mistakes; evaluation.json of the run has them all.",
                      mistakes_html(results));
}

}  // namespace

ClassResults read_class_results(const std::string& path, std::vector<std::string>& notes) {
  ClassResults results;
  if (!file_exists(path)) return results;
  const auto json = parse_json_or_discard<nlohmann::json>(read_file(path, file_kind::evaluation));
  const auto classes = json.is_object() ? json.find("classes") : json.end();
  if (classes == json.end() || !classes->is_array()) {
    notes.push_back(fmt::format("{}: it has no classes; ignored", path));
    return results;
  }
  for (const auto& item : *classes) {
    const double examples = figure(item, "examples"), predictions = figure(item, "predictions");
    results.classes.push_back({label_in(item, "label"), std::isfinite(examples) ? examples : 0,
                               std::isfinite(predictions) ? predictions : 0, score_in(item, "")});
    results.examples += results.classes.back().examples;
  }
  results.accuracy = figure(json, "accuracy");
  results.macro = score_in(json, "macro_");
  results.weighted = score_in(json, "weighted_");
  if (const auto confusion = json.find("confusion"); confusion != json.end()) read_confusions(*confusion, results);
  return results;
}

Html class_sections_html(const ClassResults& results) {
  return results.empty() ? Html() : class_table_section(results) + confusion_section(results);
}

}  // namespace brisk
