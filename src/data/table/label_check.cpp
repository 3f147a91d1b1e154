#include "data/table/label_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/terminal/terminal.h"
#include "data/corpus/statistics.h"
#include "data/table/labels.h"

namespace brisk {

namespace {

// Half stars from 0 to 10 are 21 classes; what has more values than these, and fractions, was measured.
constexpr int64_t kMostFractions = 30, kFewFractions = 10;
constexpr int64_t kManyNumbers = 20;  // whole ones, that might be counts or ages
constexpr int64_t kSmallTable = 20;   // rows: somebody tries something out
constexpr int64_t kFewRows = 10;      // of a class on average: a warning
constexpr double kWordsOfText = 5;    // in a label on average

constexpr const char* kRegression =
    "to predict a number is regression, which brisk does not do; divide the range into a few classes (\"low\", "
    "\"medium\", \"high\")";
constexpr const char* kSeveralLabels =
    "several labels for a text is multi-label classification, which brisk does not do; give each text one label, or "
    "train a classifier for each with a column of yes and no";

int64_t rows_of(const LabelRows& labels) {
  int64_t rows = 0;
  for (const auto& [name, count] : labels) rows += count;
  return rows;
}

// "0.5, 0.25, 1.125, ...": the first few.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 4;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i)
    shown.push_back(fmt::format("\"{}\"", shortened(names[i], 40)));
  if (names.size() > kShown) shown.emplace_back("...");
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::vector<std::string> names_of(const LabelRows& labels) {
  std::vector<std::string> names;
  names.reserve(labels.size());
  for (const auto& [name, count] : labels) names.push_back(name);
  return names;
}

// The values of labels that are all numbers; else nothing.
std::vector<double> numbers_of(const LabelRows& labels) {
  std::vector<double> values;
  for (const auto& [name, count] : labels) {
    const std::optional<double> value = number_of_label(name);
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

void check_numbers(const LabelRows& labels, LabelFindings& findings) {
  const std::vector<double> values = numbers_of(labels);
  if (values.empty()) return;
  const auto classes = std::ssize(values);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const std::string found = fmt::format("{} different numbers from {} to {} in {} rows", with_commas(classes), *least,
                                        *most, with_commas(rows_of(labels)));
  const bool fractions = std::any_of(values.begin(), values.end(), [](double v) { return v != std::floor(v); });
  if (fractions && classes > kMostFractions) {
    findings.problem = fmt::format("{}: measurements, and not classes; {}", found, kRegression);
  } else if (fractions && classes > kFewFractions) {
    findings.warnings.push_back(
        fmt::format("{}: each is a class of its own, and that 3.5 is near 4 is not learned; if they are measurements, "
                    "{}",
                    found, kRegression));
  } else if (!fractions && classes > kManyNumbers) {
    // Numbers of classes begin with 0 or 1 and leave none out; ids may be anything, but far apart.
    const double span = *most - *least + 1;
    const bool numbered = *least <= 1 && *least >= 0 && span == static_cast<double>(classes);
    if (!numbered && span <= 20 * static_cast<double>(classes)) {
      findings.warnings.push_back(
          fmt::format("{}: each is a class of its own; if they are counts, ages or prices, {}", found, kRegression));
    }
  }
}

std::vector<std::string_view> parts_of(std::string_view label, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= label.size();) {
    const size_t end = std::min(label.find(separator, begin), label.size());
    if (const std::string_view part = trimmed_label(label.substr(begin, end - begin)); !part.empty())
      parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

bool in_brackets(std::string_view label) {
  if (label.size() < 2) return false;
  const char first = label.front(), last = label.back();
  if (first == '{' && last == '}') return true;
  const bool brackets = (first == '[' && last == ']') || (first == '(' && last == ')');
  // "(none)" is a word; "[1 0 1]" and "['joy']" are lists.
  return brackets && (first == '[' || label.find(',') != std::string_view::npos);
}

// What a separator divides the labels into.
struct Division {
  std::vector<std::string> several;                // labels of more than one part
  std::map<std::string, std::set<size_t>> places;  // of each part: the first of its label, the second, ...
  std::set<std::string> alone;                     // labels of one part
};

Division divide(const LabelRows& labels, char separator) {
  Division division;
  for (const auto& [name, count] : labels) {
    const std::vector<std::string_view> parts = parts_of(name, separator);
    if (parts.size() > 1) division.several.push_back(name);
    if (parts.size() == 1) division.alone.emplace(parts[0]);
    for (size_t i = 0; i < parts.size(); ++i) division.places[std::string(parts[i])].insert(i);
  }
  return division;
}

// Parts of lists wander ("anger,joy" and "joy,sad"), those of a name stay where they are ("Paris, France").
bool wander(const Division& division) {
  const auto wandering = std::count_if(division.places.begin(), division.places.end(),
                                       [](const auto& part) { return part.second.size() > 1; });
  return 3 * wandering >= std::ssize(division.places);
}

// What may stand inside a name divides a list where the parts are labels by themselves: "toxic insult". Or they are
// numbers: "0 1 1 0".
bool are_labels_themselves(const Division& division, char separator) {
  int64_t parts = 0, known = 0, numbers = 0;
  for (const std::string& label : division.several) {
    for (const std::string_view part : parts_of(label, separator)) {
      ++parts;
      known += division.alone.contains(std::string(part));
      numbers += number_of_label(part).has_value();
    }
  }
  return 10 * known >= 9 * parts || (separator == ' ' && numbers == parts);
}

void check_lists(const LabelRows& labels, LabelFindings& findings) {
  std::vector<std::string> bracketed;
  for (const auto& [name, count] : labels) {
    if (in_brackets(name)) bracketed.push_back(name);
  }
  if (2 * std::ssize(bracketed) >= std::ssize(labels)) {
    findings.problem =
        fmt::format("{} is a list, and each different list would be a class; {}", some_of(bracketed), kSeveralLabels);
    return;
  }
  constexpr int64_t kEnough = 3;
  for (const char separator : {',', ';', '|', '/', '+', '&', ' ', '-', '_'}) {
    const bool in_names = separator == ' ' || separator == '-' || separator == '_';
    const Division division = divide(labels, separator);
    const int64_t several = std::ssize(division.several);
    if (several == 0 || !wander(division)) continue;
    if (in_names && (several < kEnough || !are_labels_themselves(division, separator))) continue;
    const std::string found = fmt::format("{} of {} labels are made of others ({})", with_commas(several),
                                          with_commas(std::ssize(labels)), some_of(division.several));
    if (several >= kEnough) {
      findings.problem = fmt::format("{}, and each combination would be a class; {}", found, kSeveralLabels);
      return;
    }
    findings.warnings.push_back(
        fmt::format("{}, and each combination is a class of its own; if it is a list, {}", found, kSeveralLabels));
  }
}

// One answer in several spellings: True, true, yes, 1.
void check_answers(const LabelRows& labels, LabelFindings& findings) {
  static const std::set<std::string> yes = {"true", "t", "yes", "y", "1"}, no = {"false", "f", "no", "n", "0"};
  if (labels.size() < 3) return;
  std::vector<std::string> for_yes, for_no;
  for (const auto& [name, count] : labels) {
    std::string plain;
    for (const char c : name) plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    if (number_of_label(plain) == 1) plain = "1";
    if (number_of_label(plain) == 0) plain = "0";
    if (!yes.contains(plain) && !no.contains(plain)) return;
    (yes.contains(plain) ? for_yes : for_no).push_back(name);
  }
  if (for_yes.empty() || for_no.empty()) return;
  findings.problem =
      fmt::format("{} and {} are {} classes, but two answers in several spellings; write each of them in one way",
                  some_of(for_yes), some_of(for_no), labels.size());
}

void check_counts(const LabelRows& labels, bool all_rows, LabelFindings& findings) {
  const int64_t classes = std::ssize(labels), rows = rows_of(labels);
  const int64_t single = std::count_if(labels.begin(), labels.end(), [](const auto& row) { return row.second == 1; });
  double words = 0;
  for (const auto& [name, count] : labels) words += static_cast<double>(parts_of(name, ' ').size());
  const bool text = words >= kWordsOfText * static_cast<double>(classes);
  const std::string found =
      fmt::format("{} different labels in {} rows, {} of them in one row only", with_commas(classes), with_commas(rows),
                  single == classes ? "all" : with_commas(single));
  if (!all_rows) {
    // Of a sample it says something only where the labels are texts themselves.
    if (text && 2 * classes > rows && rows > kSmallTable)
      findings.problem = fmt::format("{}: free text, and no classes ({})", found, some_of(names_of(labels)));
    return;
  }
  if (rows <= kSmallTable) {
    if (classes == rows) {
      findings.warnings.push_back(fmt::format("{}: there is nothing that the rows have in common to learn", found));
    }
  } else if (2 * classes > rows || (text && 5 * classes > rows)) {
    findings.problem =
        text ? fmt::format("{}: free text, and no classes ({})", found, some_of(names_of(labels)))
             : fmt::format("{}: a class cannot be learned from one row ({})", found, some_of(names_of(labels)));
  } else if (kFewRows * classes > rows || 4 * single > classes) {
    findings.warnings.push_back(
        fmt::format("{}: a class with few rows is hardly learned, and one with a single row is never evaluated; join "
                    "the rare ones (\"other\")",
                    found));
  }
}

}  // namespace

LabelFindings check_labels(const LabelRows& labels, bool all_rows) {
  LabelFindings findings;
  check_answers(labels, findings);
  if (findings.problem.empty()) check_lists(labels, findings);
  if (findings.problem.empty()) check_numbers(labels, findings);
  if (findings.problem.empty()) check_counts(labels, all_rows, findings);
  return findings;
}

}  // namespace brisk
