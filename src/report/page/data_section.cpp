#include "report/page/data_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/page/bar_chart.h"
#include "report/read/run_facts.h"

namespace brisk {

namespace {

std::string part_of(double part, double whole) {
  return whole > 0 ? fmt::format(" ({})", words::percent(part / whole)) : std::string();
}

Html facts_table(const RunRecord& run) {
  const DataFacts& data = run.data;
  HtmlTable table;
  const auto add = [&](const char* name, bool known, const std::string& text) {
    if (known) table.rows.push_back({html("{}", name), html("{}", text)});
  };
  const std::string& unit = data.unit;
  add(unit.c_str(), true, words::exact(data.count));
  add("tokens in an epoch", std::isfinite(data.tokens_per_epoch), words::exact(std::round(data.tokens_per_epoch)));
  add("tokens to validate with", run.validation_tokens > 0, words::exact(run.validation_tokens));
  add("length", std::isfinite(data.mean),
      fmt::format("{} to {} tokens, on average {:.1f}; half have up to {}, 95 % up to {}", words::exact(data.shortest),
                  words::exact(data.longest), data.mean, words::exact(data.median), words::exact(data.percentile_95)));
  add("sequences", std::isfinite(data.sequences),
      fmt::format("{} of at most {} tokens; {} documents are longer and were split", words::exact(data.sequences),
                  words::exact(data.max_length), words::exact(data.split)));
  add("cut", data.truncated > 0,
      fmt::format("{} {}{} are longer than {} tokens; {} tokens{} are not read", words::exact(data.truncated), unit,
                  part_of(data.truncated, data.count), words::exact(data.max_length), words::exact(data.tokens_cut),
                  part_of(data.tokens_cut, data.tokens_per_epoch + data.tokens_cut)));
  add("copies", data.copies > 0,
      fmt::format("{} {}{} repeat an earlier one", words::exact(data.copies), unit, part_of(data.copies, data.count)));
  add("contradictions", data.contradictions > 0,
      fmt::format("{} texts have different labels", words::exact(data.contradictions)));
  add("in the validation, too", data.shared_with_validation > 0,
      fmt::format("{} documents of the validation", words::exact(data.shared_with_validation)));
  add("a step", std::isfinite(data.tokens_per_step),
      fmt::format("{} tokens on average", words::exact(std::round(data.tokens_per_step))));
  return html_table(table);
}

Html lengths_chart(const DataFacts& data) {
  std::vector<Bar> bars;
  for (const DataFacts::Lengths& lengths : data.lengths) {
    bars.push_back({.name = fmt::format("{} to {} tokens", words::exact(lengths.from), words::exact(lengths.to)),
                    .value = lengths.count,
                    .text = words::exact(lengths.count),
                    .colour = 5});
  }
  return bars.empty() ? Html() : html("<h3>Lengths</h3>\n{}", bar_chart_html(bars));
}

Html classes_chart(const DataFacts& data) {
  constexpr size_t kShown = 20;
  if (data.classes.empty()) return {};
  std::vector<std::pair<std::string, double>> classes = data.classes;
  if (classes.size() > kShown) {
    std::stable_sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    classes.resize(kShown);
  }
  std::vector<Bar> bars;
  for (const auto& [name, examples] : classes) {
    bars.push_back(
        {.name = name, .value = examples, .text = words::exact(examples) + part_of(examples, data.count), .colour = 3});
  }
  const std::string which = classes.size() < data.classes.size()
                                ? fmt::format("the {} largest of {}", classes.size(), data.classes.size())
                                : fmt::format("{}", classes.size());
  return html("<h3>Classes: {}</h3>\n{}", which, bar_chart_html(bars));
}

}  // namespace

Html data_section_html(const RunRecord& run) {
  if (run.data.empty()) return {};
  return html_section("Data", "What was trained on, as the start of the run counted it.",
                      facts_table(run) + classes_chart(run.data) + lengths_chart(run.data));
}

}  // namespace brisk
