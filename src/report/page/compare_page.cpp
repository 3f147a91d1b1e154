#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/metrics.h"
#include "report/page/chart.h"
#include "report/page/compare.h"
#include "report/page/html.h"
#include "report/page/ledger_bars.h"

namespace brisk {

namespace {

Html label_html(const Comparison& comparison, size_t run) {
  return html("<span class=\"label\"><i class=\"c{}\"></i>{}</span>", run % 8 + 1, comparison.labels[run]);
}

Html table_section(const Comparison& comparison) {
  const std::vector<ComparedColumn> columns = compared_columns(comparison);
  const auto cell = [](const ComparedColumn& column, size_t run) {
    return column.best == static_cast<int>(run) ? html("<b class=\"best\">{}</b>", column.cells[run])
                                                : Html(column.cells[run]);
  };
  HtmlTable table;
  table.numbers = true;
  constexpr size_t kFew = 6;
  if (comparison.runs.size() <= kFew) {  // a column each: that fits on a page, and two on a telephone
    table.header = {""};
    std::vector<Html> statuses = {"status"};
    for (size_t i = 0; i < comparison.runs.size(); ++i) {
      table.header.push_back(label_html(comparison, i));
      statuses.push_back(status_pill(comparison.runs[i].status_text()));
    }
    const bool two = comparison.runs.size() == 2;
    if (two) {
      table.header.emplace_back("second / first");
      statuses.emplace_back();
    }
    table.rows.push_back(statuses);
    for (const ComparedColumn& column : columns) {
      std::vector<Html> row = {column.title};
      for (size_t i = 0; i < comparison.runs.size(); ++i) row.push_back(cell(column, i));
      if (two) row.push_back(column.ratio);
      table.rows.push_back(std::move(row));
    }
  } else {
    table.header = {"run", "status"};
    for (const ComparedColumn& column : columns) table.header.push_back(column.title);
    for (size_t i = 0; i < comparison.runs.size(); ++i) {
      std::vector<Html> row = {label_html(comparison, i), status_pill(comparison.runs[i].status_text())};
      for (const ComparedColumn& column : columns) row.push_back(cell(column, i));
      table.rows.push_back(std::move(row));
    }
  }
  return html_section("Figures", "The best of each kind is green.", html_table(table));
}

enum class Against { time, steps, tokens };

// Of each run a line against each axis. `y_of` makes a point's y, and is unknown where there is none.
template <typename Point, typename YOf>
Html curves_section(const Comparison& comparison, const std::string& title, const std::string& why,
                    std::vector<Point> RunRecord::*points, const YOf& y_of, Chart chart, bool smooth) {
  constexpr const char* kNames[] = {"wall time", "step", "tokens"};
  std::vector<std::pair<std::string, Html>> views;
  for (const Against against : {Against::time, Against::steps, Against::tokens}) {
    chart.x_name = kNames[static_cast<int>(against)];
    chart.x_is_time = against == Against::time;
    chart.lines.clear();
    for (size_t i = 0; i < comparison.runs.size(); ++i) {
      ChartLine line{.name = comparison.labels[i], .colour = static_cast<int>(i) + 1, .smooth = smooth};
      for (const Point& point : comparison.runs[i].*points) {
        line.points.emplace_back(against == Against::steps  ? point.step
                                 : against == Against::time ? point.seconds
                                                            : point.tokens,
                                 y_of(point));
      }
      line.dots = !smooth && line.points.size() <= 60;
      chart.lines.push_back(std::move(line));
    }
    views.emplace_back(against == Against::steps  ? "steps"
                       : against == Against::time ? "time"
                                                  : "tokens",
                       chart_html(chart));
  }
  return html_section(title, why, html_choice(title, views));
}

Html ledger_section(const Comparison& comparison) {
  std::vector<LedgerBar> bars;
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const RunRecord& run = comparison.runs[i];
    if (!run.ledger.empty()) bars.push_back({comparison.labels[i], words::duration(run.seconds), run.ledger});
  }
  if (bars.empty()) return {};
  return html_section("Where the time went",
                      html("Shares of each run's wall time; the pages of <code>brisk report</code> have the figures."),
                      ledger_bars_html(bars) + ledger_legend_html(bars));
}

Html differences_section(const Comparison& comparison) {
  if (comparison.runs.size() < 2) return {};
  if (comparison.differences.empty())
    return html_section("Settings that differ", "", html("<p>None: the jobs are the same.</p>"));
  HtmlTable table;
  table.header = {"setting"};
  for (size_t i = 0; i < comparison.labels.size(); ++i) {
    table.header.push_back(label_html(comparison, i));
  }
  for (const Difference& difference : comparison.differences) {
    std::vector<Html> row = {html("<span class=\"mono\">{}</span>", difference.path)};
    for (const std::string& value : difference.values) {
      row.push_back(html("<span class=\"mono value\">{}</span>", value));
    }
    table.rows.push_back(std::move(row));
  }
  return html_section("Settings that differ", "", html_table(table));
}

}  // namespace

std::string comparison_page(const Comparison& comparison) {
  std::vector<std::string> notes;
  for (const std::string& warning : comparison.warnings) notes.push_back(warning);
  for (const RunRecord& run : comparison.runs) notes.insert(notes.end(), run.notes.begin(), run.notes.end());
  Html lead;
  if (std::isfinite(comparison.common.value)) {
    const auto& seconds = comparison.seconds_to_common;
    size_t first = 0;
    for (size_t i = 1; i < seconds.size(); ++i) {
      if (seconds[i] < seconds[first] || std::isnan(seconds[first])) first = i;
    }
    lead = html("<p class=\"lead\">A validation {} of {} was reached first by {}, after {}.</p>",
                comparison.common.title(), comparison.common.text(), comparison.labels[first],
                words::duration(seconds[first]));
  }
  Html body = html("<header><h1>{} runs compared</h1>\n{}</header>\n", comparison.runs.size(), lead);
  body += html_notes(notes) + table_section(comparison);
  for (const Metric& metric : metrics_of_all(comparison)) {
    const bool percent = metric.format == MetricFormat::percent;
    body += curves_section(
        comparison, "Validation " + metric.title(),
        comparison.can.same_task ? metric_explanation(metric, comparison.runs.front().task)
                                 : "Not comparable: the tasks differ.",
        &RunRecord::evaluations,
        [&](const EvaluationPoint& point) { return (percent ? 100 : 1) * point.metrics.value(metric.name); },
        {.y_name = metric.title() + (percent ? ", %" : ""), .height = 340, .focus = !percent}, false);
  }
  body += curves_section(
      comparison, "Training loss", "Running means of the logged steps, and the steps themselves.", &RunRecord::steps,
      [](const StepPoint& point) { return point.metric("loss"); }, {.y_name = "loss", .height = 340, .focus = true},
      true);
  body += differences_section(comparison) + ledger_section(comparison);
  body += html("<footer>written by <code>brisk compare</code></footer>\n");
  return html_page("brisk: runs compared", body);
}

}  // namespace brisk
