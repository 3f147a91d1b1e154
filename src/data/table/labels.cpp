#include "data/table/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

std::string number_text(double value) { return fmt::format("{}", value == 0 ? 0.0 : value); }  // no minus zero

std::string without_capitals(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != ' ' && c != '_' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return plain;
}

bool all_numbers(const std::vector<std::string>& names) {
  const auto is_number = [](const std::string& name) { return number_of_label(name).has_value(); };
  return !names.empty() && std::all_of(names.begin(), names.end(), is_number);
}

}  // namespace

LabelSet::LabelSet(std::vector<std::string> labels) : names_(std::move(labels)) {
  numbers_ = all_numbers(names_);
  if (numbers_) {
    std::vector<double> values;
    for (const std::string& name : names_) values.push_back(*number_of_label(name));
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    names_.clear();
    for (const double value : values) names_.push_back(number_text(value));
  } else {
    std::sort(names_.begin(), names_.end());
    names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
  }
  index();
}

LabelSet LabelSet::in_order(std::vector<std::string> names) {
  LabelSet set;
  set.names_ = std::move(names);
  set.numbers_ = all_numbers(set.names_);
  set.index();
  return set;
}

void LabelSet::index() {
  for (size_t i = 0; i < names_.size(); ++i) {
    numbers_of_.emplace(numbers_ ? number_text(*number_of_label(names_[i])) : names_[i], static_cast<int32_t>(i));
  }
}

int32_t LabelSet::find(std::string_view label) const {
  std::string key(trimmed_label(label));
  if (numbers_) {
    const std::optional<double> value = number_of_label(key);
    if (!value) return -1;
    key = number_text(*value);
  }
  const auto found = numbers_of_.find(key);
  return found == numbers_of_.end() ? -1 : found->second;
}

std::string LabelSet::text(int64_t most) const {
  std::vector<std::string> shown;
  for (int64_t i = 0; i < std::min(most, count()); ++i) shown.push_back(printable(name(i), 40));
  return fmt::format("{}{}", fmt::join(shown, ", "), count() > most ? fmt::format(", ... ({} in all)", count()) : "");
}

std::string LabelSet::near_copies() const {
  if (numbers_) return "";
  std::map<std::string, std::string> seen;
  std::vector<std::string> pairs;
  for (const std::string& name : names_) {
    const auto [found, is_new] = seen.emplace(without_capitals(name), name);
    if (!is_new && pairs.size() < 5) pairs.push_back(format_message("\"{}\" and \"{}\"", found->second, name));
  }
  return fmt::format("{}", fmt::join(pairs, ", "));
}

std::optional<double> number_of_label(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::string_view trimmed_label(std::string_view cell) {
  constexpr std::string_view kSpaces = " \t\r\n\v\f";
  const size_t begin = cell.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return cell.substr(begin, cell.find_last_not_of(kSpaces) - begin + 1);
}

std::vector<float> balanced_class_weights(std::span<const int64_t> examples_of_class) {
  double examples = 0;
  for (const int64_t count : examples_of_class) examples += static_cast<double>(count);
  const double share = examples / static_cast<double>(examples_of_class.size());
  std::vector<float> weights;
  for (const int64_t count : examples_of_class) {
    weights.push_back(count > 0 ? static_cast<float>(share / static_cast<double>(count)) : 0.0f);
  }
  return weights;
}

}  // namespace brisk
