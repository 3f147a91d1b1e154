#include <fmt/format.h>

#include <algorithm>

#include "report/page/chart.h"
#include "report/page/compare.h"
#include "report/page/html.h"
#include "report/page/ledger_bars.h"

namespace brisk {

namespace {

std::string swatch(size_t run) { return fmt::format("<i class=\"c{}\"></i>", run % 8 + 1); }

std::string label_html(const Comparison& comparison, size_t run) {
  return fmt::format("<span class=\"label\">{}{}</span>", swatch(run), html_escape(comparison.labels[run]));
}

std::string table_section(const Comparison& comparison) {
  const std::vector<ComparedColumn> columns = compared_columns(comparison);
  const auto cell = [](const ComparedColumn& column, size_t run) {
    return column.best == static_cast<int>(run) ? fmt::format("<b class=\"best\">{}</b>", column.cells[run])
                                                : column.cells[run];
  };
  HtmlTable table;
  table.numbers = true;
  constexpr size_t kFew = 6;
  if (comparison.runs.size() <= kFew) {  // a column each: that fits on a page, and two on a telephone
    table.header = {""};
    std::vector<std::string> statuses = {"status"};
    for (size_t i = 0; i < comparison.runs.size(); ++i) {
      table.header.push_back(label_html(comparison, i));
      statuses.push_back(status_pill(comparison.runs[i].status));
    }
    table.rows.push_back(statuses);
    for (const ComparedColumn& column : columns) {
      std::vector<std::string> row = {html_escape(column.title)};
      for (size_t i = 0; i < comparison.runs.size(); ++i) row.push_back(cell(column, i));
      table.rows.push_back(std::move(row));
    }
  } else {
    table.header = {"run", "status"};
    for (const ComparedColumn& column : columns) table.header.push_back(html_escape(column.title));
    for (size_t i = 0; i < comparison.runs.size(); ++i) {
      std::vector<std::string> row = {label_html(comparison, i), status_pill(comparison.runs[i].status)};
      for (const ComparedColumn& column : columns) row.push_back(cell(column, i));
      table.rows.push_back(std::move(row));
    }
  }
  return html_section("Figures", "The best of each kind is green.", html_table(table));
}

enum class Against { steps, time, tokens };

// What is drawn of each run's points, and how.
template <typename Point>
struct Curve {
  std::vector<Point> RunRecord::*points;
  double Point::*value;
  const char* name;
  double scale = 1;
  bool smooth = false;
  bool focus = true;
};

template <typename Point>
std::string curves(const Comparison& comparison, const Curve<Point>& curve, Against against) {
  const char* names[] = {"step", "wall time", "tokens"};
  Chart chart{.x_name = names[static_cast<int>(against)],
              .y_name = curve.name,
              .x_is_time = against == Against::time,
              .height = 340,
              .focus = curve.focus};
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    ChartLine line{.name = comparison.labels[i], .colour = static_cast<int>(i) + 1, .smooth = curve.smooth};
    for (const Point& point : comparison.runs[i].*curve.points) {
      const double x = against == Against::steps ? point.step : against == Against::time ? point.seconds : point.tokens;
      line.points.emplace_back(x, curve.scale * point.*curve.value);
    }
    line.dots = !curve.smooth && line.points.size() <= 60;
    chart.lines.push_back(std::move(line));
  }
  return chart_html(chart);
}

template <typename Point>
std::string curves_section(const Comparison& comparison, const char* title, const char* why,
                           const Curve<Point>& curve) {
  const auto view = [&](Against against) { return curves(comparison, curve, against); };
  return html_section(
      title, why,
      html_choice(title,
                  {{"time", view(Against::time)}, {"steps", view(Against::steps)}, {"tokens", view(Against::tokens)}}));
}

std::string ledger_section(const Comparison& comparison) {
  std::vector<LedgerBar> bars;
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const RunRecord& run = comparison.runs[i];
    if (!run.ledger.empty()) bars.push_back({comparison.labels[i], words::duration(run.seconds), run.ledger});
  }
  if (bars.empty()) return "";
  return html_section("Where the time went",
                      "Shares of each run's wall time; the pages of <code>brisk report</code> have "
                      "the figures.",
                      ledger_bars_html(bars) + ledger_legend_html(bars));
}

std::string differences_section(const Comparison& comparison) {
  if (comparison.runs.size() < 2) return "";
  if (comparison.differences.empty())
    return html_section("Settings that differ", "", "<p>None: the jobs are the same.</p>");
  HtmlTable table;
  table.header = {"setting"};
  for (size_t i = 0; i < comparison.labels.size(); ++i) {
    table.header.push_back(label_html(comparison, i));
  }
  for (const Difference& difference : comparison.differences) {
    std::vector<std::string> row = {fmt::format("<span class=\"mono\">{}</span>", html_escape(difference.path))};
    for (const std::string& value : difference.values) {
      row.push_back(fmt::format("<span class=\"mono value\">{}</span>", html_escape(value)));
    }
    table.rows.push_back(std::move(row));
  }
  return html_section("Settings that differ", "", html_table(table));
}

}  // namespace

std::string comparison_page(const Comparison& comparison) {
  std::vector<std::string> notes;
  for (const RunRecord& run : comparison.runs) notes.insert(notes.end(), run.notes.begin(), run.notes.end());
  std::string lead;
  if (!comparison.same_task) {
    lead = "<p class=\"lead\">The tasks differ: their losses and accuracies are not of the same things.</p>";
  } else if (std::isfinite(comparison.common_loss) || std::isfinite(comparison.common_accuracy)) {
    const auto& seconds = comparison.seconds_to_common;
    size_t first = 0;
    for (size_t i = 1; i < seconds.size(); ++i) {
      if (seconds[i] < seconds[first] || std::isnan(seconds[first])) first = i;
    }
    lead = fmt::format("<p class=\"lead\">A validation {} was reached first by {}, after {}.</p>",
                       comparison.classifiers ? "accuracy of " + words::accuracy(comparison.common_accuracy)
                                              : "loss of " + words::loss(comparison.common_loss),
                       html_escape(comparison.labels[first]), words::duration(seconds[first]));
  }
  std::string body = fmt::format("<header><h1>{} runs compared</h1>\n{}</header>\n", comparison.runs.size(), lead);
  body += html_notes(notes) + table_section(comparison);
  if (comparison.classifiers) {
    body += curves_section(comparison, "Validation accuracy", "Percent of the examples whose class is named correctly.",
                           Curve<EvaluationPoint>{.points = &RunRecord::evaluations,
                                                  .value = &EvaluationPoint::accuracy,
                                                  .name = "accuracy, %",
                                                  .scale = 100,
                                                  .focus = false});
  }
  const std::string task = comparison.same_task && !comparison.runs.empty() ? comparison.runs.front().task : "";
  body += curves_section(
      comparison, "Validation loss", task.empty() ? "Of different things: the tasks differ." : words_of_task(task).loss,
      Curve<EvaluationPoint>{.points = &RunRecord::evaluations, .value = &EvaluationPoint::loss, .name = "loss"});
  body += curves_section(
      comparison, "Training loss", "Running means of the logged steps, and the steps themselves.",
      Curve<StepPoint>{.points = &RunRecord::steps, .value = &StepPoint::loss, .name = "loss", .smooth = true});
  body += differences_section(comparison) + ledger_section(comparison);
  body += "<footer>written by <code>brisk compare</code></footer>\n";
  return html_page("brisk: runs compared", body);
}

}  // namespace brisk
