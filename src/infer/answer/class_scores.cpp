#include "infer/answer/class_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

uint64_t pair_key(int64_t label, int64_t predicted) {
  return static_cast<uint64_t>(label) << 32 | static_cast<uint64_t>(predicted);
}

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

// A table row of a class: long names are cut.
std::string shown(const std::string& name) { return printable(name, 24); }

std::vector<int64_t> most_frequent(const ClassScores& scores, size_t most) {
  std::vector<int64_t> order(static_cast<size_t>(scores.classes()));
  std::iota(order.begin(), order.end(), 0);
  if (order.size() <= most) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return scores.of_class(a).examples > scores.of_class(b).examples; });
  order.resize(most);
  return order;
}

std::string matrix_text(const ClassScores& scores, const std::vector<std::string>& names) {
  std::vector<Table::Column> columns = {{"label \\ predicted"}};
  for (const std::string& name : names) columns.emplace_back(shown(name), Align::right);
  Table table(std::move(columns));
  for (int64_t label = 0; label < scores.classes(); ++label) {
    std::vector<std::string> row = {shown(names[static_cast<size_t>(label)])};
    for (int64_t predicted = 0; predicted < scores.classes(); ++predicted) {
      row.push_back(fmt::format("{}", scores.confused(label, predicted)));
    }
    table.add_row(std::move(row));
  }
  return table.text();
}

std::string mistakes_text(const ClassScores& scores, const std::vector<std::string>& names) {
  constexpr size_t kMost = 10;
  std::vector<ClassScores::Confusion> mistakes = scores.confusions();
  std::erase_if(mistakes, [](const auto& item) { return item.label == item.predicted; });
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const auto& a, const auto& b) { return a.examples > b.examples; });
  mistakes.resize(std::min(mistakes.size(), kMost));
  Table table({"most frequent mistakes: label", {"predicted"}, {"examples", Align::right}});
  for (const auto& item : mistakes) {
    table.add_row({shown(names[static_cast<size_t>(item.label)]), shown(names[static_cast<size_t>(item.predicted)]),
                   fmt::format("{}", item.examples)});
  }
  return table.text();
}

}  // namespace

ClassScores::ClassScores(int64_t classes)
    : examples_(static_cast<size_t>(classes)),
      predictions_(static_cast<size_t>(classes)),
      hits_(static_cast<size_t>(classes)) {}

void ClassScores::add(int32_t label, int32_t predicted, int64_t examples) {
  BRISK_CHECK(label >= 0 && label < classes() && predicted >= 0 && predicted < classes(),
              "label {}, predicted {} of {}", label, predicted, classes());
  count_ += examples;
  examples_[static_cast<size_t>(label)] += examples;
  predictions_[static_cast<size_t>(predicted)] += examples;
  confused_[pair_key(label, predicted)] += examples;
  if (label != predicted) return;
  correct_ += examples;
  hits_[static_cast<size_t>(label)] += examples;
}

double ClassScores::accuracy() const { return ratio(correct_, count_); }

ClassScores::Interval ClassScores::accuracy_interval() const {
  if (count_ == 0) return {};
  constexpr double z = 1.959963984540054;  // of 95 %
  const auto n = static_cast<double>(count_);
  const double p = accuracy(), spread = z * z / n;
  const double middle = (p + spread / 2) / (1 + spread);
  const double half = z * std::sqrt(p * (1 - p) / n + spread / (4 * n)) / (1 + spread);
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

ClassScores::Score ClassScores::of_class(int64_t label) const {
  const auto i = static_cast<size_t>(label);
  Score score{examples_[i], predictions_[i], ratio(hits_[i], predictions_[i]), ratio(hits_[i], examples_[i]), 0};
  score.f1 = ratio(2 * hits_[i], examples_[i] + predictions_[i]);
  return score;
}

ClassScores::Score ClassScores::macro() const {
  Score sum;
  double occurring = 0;
  for (int64_t label = 0; label < classes(); ++label) {
    const Score score = of_class(label);
    if (score.examples == 0 && score.predictions == 0) continue;
    ++occurring;
    sum.precision += score.precision;
    sum.recall += score.recall;
    sum.f1 += score.f1;
  }
  occurring = std::max(1.0, occurring);
  return {count_, count_, sum.precision / occurring, sum.recall / occurring, sum.f1 / occurring};
}

ClassScores::Score ClassScores::weighted() const {
  Score sum{count_, count_};
  for (int64_t label = 0; label < classes(); ++label) {
    const Score score = of_class(label);
    const double share = ratio(score.examples, count_);
    sum.precision += share * score.precision;
    sum.recall += share * score.recall;
    sum.f1 += share * score.f1;
  }
  return sum;
}

int64_t ClassScores::confused(int64_t label, int64_t predicted) const {
  const auto found = confused_.find(pair_key(label, predicted));
  return found == confused_.end() ? 0 : found->second;
}

std::vector<ClassScores::Confusion> ClassScores::confusions() const {
  std::vector<Confusion> all;
  for (const auto& [key, examples] : confused_) {
    all.push_back({static_cast<int32_t>(key >> 32), static_cast<int32_t>(key & 0xFFFFFFFF), examples});
  }
  std::sort(all.begin(), all.end(), [](const Confusion& a, const Confusion& b) {
    return std::pair(a.label, a.predicted) < std::pair(b.label, b.predicted);
  });
  return all;
}

Metrics class_metrics(const ClassScores& scores, double loss) {
  Metric accuracy = standard_metric("accuracy", scores.accuracy());
  const ClassScores::Interval interval = scores.accuracy_interval();
  accuracy.low = interval.low;
  accuracy.high = interval.high;
  const ClassScores::Score macro = scores.macro(), weighted = scores.weighted();
  return {standard_metric("loss", loss),
          accuracy,
          standard_metric("macro_f1", macro.f1),
          standard_metric("weighted_f1", weighted.f1),
          standard_metric("macro_precision", macro.precision),
          standard_metric("macro_recall", macro.recall),
          standard_metric("weighted_precision", weighted.precision),
          standard_metric("weighted_recall", weighted.recall)};
}

std::string scores_text(const ClassScores& scores, const std::vector<std::string>& names) {
  constexpr size_t kMostClasses = 20;
  constexpr int64_t kMatrix = 10;
  Table table({"class",
               {"examples", Align::right},
               {"precision", Align::right},
               {"recall", Align::right},
               {"F1", Align::right}});
  const auto add = [&](const std::string& name, const ClassScores::Score& score) {
    table.add_row({shown(name), fmt::format("{}", score.examples), percent(score.precision), percent(score.recall),
                   percent(score.f1)});
  };
  const std::vector<int64_t> listed = most_frequent(scores, kMostClasses);
  for (const int64_t label : listed) add(names[static_cast<size_t>(label)], scores.of_class(label));
  table.add_separator();
  if (std::ssize(listed) < scores.classes()) {
    table.add_row({fmt::format("and {} more", scores.classes() - std::ssize(listed)), "", "", "", ""});
  }
  add("mean of classes", scores.macro());
  add("weighted mean", scores.weighted());
  return table.text() + "\n" +
         (scores.classes() <= kMatrix ? matrix_text(scores, names) : mistakes_text(scores, names));
}

std::string scores_json(const ClassScores& scores, const std::vector<std::string>& names) {
  constexpr int64_t kMatrix = 100;
  const auto [low, high] = scores.accuracy_interval();
  const ClassScores::Score macro = scores.macro(), weighted = scores.weighted();
  Json json = {{"accuracy", scores.accuracy()},
               {"accuracy_interval", {low, high}},
               {"macro_f1", macro.f1},
               {"weighted_f1", weighted.f1},
               {"macro_precision", macro.precision},
               {"macro_recall", macro.recall},
               {"weighted_precision", weighted.precision},
               {"weighted_recall", weighted.recall},
               {"examples", scores.count()}};
  json["classes"] = Json::array();
  for (int64_t label = 0; label < scores.classes(); ++label) {
    const ClassScores::Score score = scores.of_class(label);
    json["classes"].push_back({{"label", names[static_cast<size_t>(label)]},
                               {"examples", score.examples},
                               {"predictions", score.predictions},
                               {"precision", score.precision},
                               {"recall", score.recall},
                               {"f1", score.f1}});
  }
  Json& confusion = json["confusion"] = Json::array();
  if (scores.classes() <= kMatrix) {
    for (int64_t label = 0; label < scores.classes(); ++label) {
      Json row = Json::array();
      for (int64_t predicted = 0; predicted < scores.classes(); ++predicted)
        row.push_back(scores.confused(label, predicted));
      confusion.push_back(std::move(row));
    }
  } else {
    for (const auto& item : scores.confusions()) {
      confusion.push_back({{"label", names[static_cast<size_t>(item.label)]},
                           {"predicted", names[static_cast<size_t>(item.predicted)]},
                           {"examples", item.examples}});
    }
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace brisk
