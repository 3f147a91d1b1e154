#include "report/page/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "base/metrics.h"
#include "base/terminal/terminal.h"
#include "report/page/chart.h"
#include "report/page/checklist.h"
#include "report/page/data_section.h"
#include "report/page/html.h"
#include "report/page/ledger_bars.h"
#include "report/page/sample_image.h"
#include "report/read/run_facts.h"

namespace brisk {

namespace {

// The three things a curve can be drawn against.
struct Axis {
  const char* tab;
  const char* name;
  bool is_time;
};
constexpr Axis kAxes[] = {{"steps", "step", false}, {"time", "wall time", true}, {"tokens", "tokens", false}};

double x_of(const auto& point, const Axis& axis) {
  if (axis.is_time) return point.seconds;
  return std::string_view(axis.name) == "tokens" ? point.tokens : point.step;
}

Html header(const RunRecord& run) {
  const RunFacts facts = facts_of(run);
  std::string lead;
  if (!facts.best.empty()) {
    for (const Metric& metric : facts.best.shown(run.best_by)) {
      lead += fmt::format("{}{} {}{}, ", lead.empty() ? "validation " : "", metric.title(), words::metric(metric),
                          metric.has_interval() ? fmt::format(" (95 %: {})", metric.interval_text()) : "");
    }
  } else if (std::isfinite(facts.training_loss)) {
    lead = fmt::format("training loss {}, no evaluation yet, ", words::loss(facts.training_loss));
  } else {
    lead = run.is_imported() ? "a model of another program, not trained here" : "no logged step yet, ";
  }
  if (!run.is_imported()) {
    lead += fmt::format("after {} and {} tokens", words::duration(run.seconds), words::count(run.tokens));
  }
  if (!run.processes.empty()) {
    const ProcessStart& last = run.processes.back();
    lead += fmt::format("; {}, {} threads, {}", last.cpu, words::exact(last.threads), last.precision);
  }
  Html when;
  if (!run.processes.empty()) {
    when = html("<p class=\"lead\">started {}{}</p>\n", run.processes.front().time,
                run.processes.size() == 2  ? ", resumed once"
                : run.processes.size() > 2 ? fmt::format(", resumed {} times", run.processes.size() - 1)
                                           : "");
  }
  return html("<header><h1>{}{}</h1>\n<p class=\"lead\">{}</p>\n{}</header>\n", run.name,
              status_pill(run.status_text()), lead, when);
}

Tile parameters_tile(const RunRecord& run) {
  return {"parameters", words::count(run.parameters),
          std::isfinite(run.parameters) ? words::bytes(facts_of(run).model_bytes) + " in fp32" : std::string()};
}

Html tiles(const RunRecord& run) {
  const RunFacts facts = facts_of(run);
  const std::string total =
      run.step < run.total_steps ? fmt::format("of {}", words::exact(run.total_steps)) : std::string();
  std::vector<Tile> all;
  const std::string at_step = std::isfinite(facts.best_step) ? fmt::format("at step {}", words::exact(facts.best_step))
                                                             : std::string("no evaluation yet");
  for (const Metric& metric : run.shown_metrics()) {
    const bool first = all.empty();
    all.push_back({(first ? "best validation " : "") + metric.title(), words::metric(facts.best, metric.name),
                   first ? at_step : "of the same step"});
    const Metric* best = facts.best.find(metric.name);
    if (best != nullptr && best->has_interval()) {
      all.push_back({"95 % interval", best->interval_text(), "of the " + metric.title()});
    }
  }
  all.push_back({"training loss", words::loss(facts.training_loss),
                 run.has_teacher ? "last logged, with the teacher's" : "last logged"});
  all.push_back({"wall time", words::duration(run.seconds), "of all processes"});
  all.push_back({"steps", words::exact(run.step), total});
  all.push_back({"tokens", words::count(run.tokens),
                 run.training_tokens > 0 ? fmt::format("{:.2f} epochs of {}", run.tokens / run.training_tokens,
                                                       words::count(run.training_tokens))
                                         : std::string()});
  all.push_back({"tokens/s", words::rate(run.tokens_per_second), "while training"});
  all.push_back({"utilisation", words::percent(run.utilisation),
                 std::isfinite(run.peak_gflops) ? fmt::format("of {:.0f} GFLOP/s", run.peak_gflops) : std::string()});
  all.push_back(parameters_tile(run));
  all.push_back({"peak memory", words::bytes(run.peak_memory_bytes), "of the process"});
  if (run.skipped_updates > 0) {
    all.push_back({"updates skipped", words::exact(run.skipped_updates),
                   run.rollbacks > 0 ? fmt::format("went back {} times", words::exact(run.rollbacks))
                                     : std::string("by the divergence guard")});
  }
  return html_tiles(all);
}

// A metric over the run, as training and as evaluations have it. `large`: across the page, and of few percent not from
// zero, where nothing happens.
Html metric_section(const RunRecord& run, const Metric& metric, bool large) {
  const bool percent = metric.format == MetricFormat::percent, mixed = metric.name == "loss" && run.has_teacher;
  const double scale = percent ? 100 : 1;
  std::vector<std::pair<std::string, Html>> views;
  bool smoothed = false;
  for (const Axis& axis : kAxes) {
    if (!large && &axis != &kAxes[0] && !axis.is_time) continue;
    ChartLine training{.name = mixed ? "training: labels and teacher" : "training", .colour = 1, .smooth = true};
    for (const StepPoint& point : run.steps) {
      const double value = scale * point.metric(metric.name);
      if (std::isfinite(value)) training.points.emplace_back(x_of(point, axis), value);
    }
    ChartLine validation{.name = mixed ? "validation: labels" : "validation", .colour = 2};
    for (const EvaluationPoint& point : run.evaluations) {
      validation.points.emplace_back(x_of(point, axis), scale * point.metrics.value(metric.name));
    }
    validation.dots = validation.points.size() <= 60;
    Chart chart{.x_name = axis.name,
                .y_name = metric.title() + (percent ? ", %" : ""),
                .x_is_time = axis.is_time,
                .height = large ? 340 : 190,
                .focus = !percent,
                .from_zero = percent && !large};
    smoothed = !training.points.empty();
    if (smoothed) chart.lines.push_back(std::move(training));
    chart.lines.push_back(std::move(validation));
    views.emplace_back(axis.tab, chart_html(chart));
  }
  std::string title = metric.title();
  const bool is_name = std::any_of(title.begin(), title.end(), [](char c) { return c >= 'A' && c <= 'Z'; });  // chrF
  if (!title.empty() && !is_name) title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  std::string why = metric_explanation(metric, run.task);
  if (smoothed) why += " The thin line is each logged step, the bold one its running mean.";
  if (mixed) {
    why +=
        " The training loss includes the distillation term, the validation loss does not: the two are not comparable.";
  }
  return html_section(title, why, html_choice(metric.name, views));
}

Html small_chart(const RunRecord& run, const char* title, const char* why, double StepPoint::*field, int colour,
                 bool smooth, bool from_zero) {
  std::vector<std::pair<std::string, Html>> views;
  for (const Axis& axis : {kAxes[0], kAxes[1]}) {
    Chart chart{.x_name = axis.name, .y_name = title, .x_is_time = axis.is_time, .height = 190, .from_zero = from_zero};
    ChartLine line{.name = title, .colour = colour, .smooth = smooth};
    for (const StepPoint& point : run.steps) line.points.emplace_back(x_of(point, axis), point.*field);
    chart.lines = {line};
    views.emplace_back(axis.tab, chart_html(chart));
  }
  return html_section(title, why, html_choice(title, views));
}

Html ledger_section(const RunRecord& run) {
  if (run.ledger.empty()) return {};
  std::vector<LedgerBar> bars = {{"whole run", words::duration(run.seconds), run.ledger}};
  constexpr size_t kMostBars = 24;
  const size_t first = run.epochs.size() > kMostBars ? run.epochs.size() - kMostBars : 0;
  for (size_t i = first; i < run.epochs.size() && run.epochs.size() > 1; ++i) {
    const EpochTime& time = run.epochs[i];
    bars.push_back({fmt::format("epoch {}", time.epoch), words::duration(time.seconds), time.ledger});
  }
  const double steps = std::isfinite(run.step) ? run.step : 0;
  return html_section(
      "Where the time went",
      first > 0 ? fmt::format("Every nanosecond belongs to one phase. The last {} epochs are drawn.", kMostBars)
                : std::string("Every nanosecond belongs to one phase."),
      ledger_bars_html(bars) + ledger_table_html(run.ledger, steps));
}

Html sample_html(const Sample& sample, const std::string& loss) {
  const bool starts = !sample.prompt.empty() && sample.text.starts_with(sample.prompt);
  return html("<div class=\"sample\"><small>step {}{}</small><p><b>{}</b>{}{}</p></div>\n",
              words::exact(static_cast<double>(sample.step)), loss, starts ? sample.prompt : "",
              std::string_view(sample.text).substr(starts ? sample.prompt.size() : 0),
              sample.ended ? html(" <span class=\"dim\" title=\"the model ended the document\">■</span>") : Html());
}

Html samples_section(const RunRecord& run) {
  if (run.samples.empty()) return {};
  std::map<int64_t, double> loss_at;
  for (const EvaluationPoint& point : run.evaluations) loss_at[std::llround(point.step)] = point.metrics.value("loss");
  std::vector<std::string> prompts;  // in the order of their first sample
  for (const Sample& sample : run.samples) {
    if (std::find(prompts.begin(), prompts.end(), sample.prompt) == prompts.end()) prompts.push_back(sample.prompt);
  }
  Html body;
  for (const std::string& prompt : prompts) {
    std::vector<Html> texts;  // the latest first
    for (auto sample = run.samples.rbegin(); sample != run.samples.rend(); ++sample) {
      if (sample->prompt != prompt) continue;
      const auto loss = loss_at.find(sample->step);
      texts.push_back(sample_html(*sample, loss == loss_at.end()
                                               ? std::string()
                                               : fmt::format(", validation loss {}", words::loss(loss->second))));
    }
    const auto referred = std::ranges::find(run.samples, prompt, &Sample::prompt);
    const Html reference =
        referred->reference.empty()
            ? Html()
            : html("<div class=\"sample\"><small>reference</small><p>{}</p></div>\n", referred->reference);
    if (referred->image.empty()) {
      body += html("<h3>{}</h3>\n", prompt.empty() ? "(no prompt)" : "“" + prompt + "”") + reference + texts.front();
    } else {
      const std::string image = sample_image(referred->image);
      body += html("<h3>{}</h3>\n<div class=\"read\">{}{}{}</div>\n", referred->image,
                   image.empty() ? html("<p class=\"dim\">the image is no longer there</p>")
                                 : html("<img src=\"{}\" alt=\"{}\">", image, referred->image),
                   reference, texts.front());
    }
    if (texts.size() > 2) {
      Html between;
      for (size_t i = 1; i + 1 < texts.size(); ++i) between += texts[i];
      body += html("<details><summary>{} between</summary>\n{}</details>\n", texts.size() - 2, between);
    }
    if (texts.size() > 1) body += texts.back();
  }
  return html_section("Samples",
                      run.samples.front().reference.empty()
                          ? std::string("Sampled with the same random numbers at each evaluation; newest first.")
                          : std::string("Texts of the validation data at each evaluation; newest first."),
                      body);
}

Html settings_section(const RunRecord& run) {
  if (run.settings.empty()) return {};
  const auto rows_of = [&](bool defaults) {
    Html rows;
    for (const Setting& setting : run.settings) {
      if (setting.is_default != defaults) continue;
      rows += html(
          "<tr><th scope=\"row\" class=\"key mono\">{}</th><td class=\"value mono\">{}</td><td "
          "class=\"dim\">{}</td></tr>\n",
          setting.path, setting.value, setting.help);
    }
    return rows;
  };
  const auto table = [](const Html& rows) {
    return rows.empty()
               ? Html()
               : html("<div class=\"scroll\"><table class=\"settings\"><tbody>\n{}</tbody></table></div>\n", rows);
  };
  const auto defaults = std::count_if(run.settings.begin(), run.settings.end(),
                                      [](const Setting& setting) { return setting.is_default; });
  return html_section(
      "Settings", "Settings that differ from their defaults.",
      table(rows_of(false)) + (defaults == 0 ? Html()
                                             : html("<details><summary>{} settings have their defaults</summary>\n"
                                                    "{}</details>\n",
                                                    defaults, table(rows_of(true)))));
}

Html machine_section(const RunRecord& run) {
  if (run.processes.empty()) return {};
  HtmlTable table;
  table.header = {"started", "from step", "host", "processor", "threads", "kernels", "precision", "peak", "memory"};
  for (const ProcessStart& process : run.processes) {
    const auto on_one_line = [](const std::string& text) { return html("<span class=\"key\">{}</span>", text); };
    table.rows.push_back(
        {on_one_line(process.time), words::exact(static_cast<double>(process.step)), process.host, process.cpu,
         on_one_line(fmt::format("{} of {}", words::exact(process.threads), words::exact(process.logical_processors))),
         process.isa, process.precision, on_one_line(words::exact(process.peak_gflops) + " GFLOP/s"),
         on_one_line(words::bytes(process.memory_bytes))});
  }
  return html_section("Machine", "One line for each process that worked on the run.", html_table(table));
}

}  // namespace

std::string report_page(const RunRecord& run) {
  const Html footer = html("<footer>{} · written by <code>brisk report</code></footer>\n", run.path);
  if (run.is_imported()) {  // there is nothing to draw
    return html_page(run.name + " · brisk", header(run) + html_notes(run.notes) + html_tiles({parameters_tile(run)}) +
                                                settings_section(run) + footer);
  }
  Html body = header(run) + html_notes(run.warnings) + html_notes(run.notes) + tiles(run);
  // That which makes a model the best, and the loss, across the page; the others in the grid.
  Html small;
  const std::vector<Metric> metrics = run.shown_metrics();
  for (const Metric& metric : metrics) {
    const bool first = metric.name == metrics.front().name, large = first || metric.name == "loss";
    (large ? body : small) += metric_section(run, metric, large);
    if (first) body += class_sections_html(run.classes);
  }
  Html grid = small_chart(run, "Learning rate", "Of the schedule, at each logged step.", &StepPoint::learning_rate, 3,
                          false, true);
  grid += small_chart(run, "Gradient norm", "Before clipping.", &StepPoint::gradient_norm, 5, true, false);
  grid += small_chart(run, "Tokens per second", "Of the steps themselves, without evaluations and checkpoints.",
                      &StepPoint::tokens_per_second, 6, true, true);
  body += html("<div class=\"grid\">\n{}{}</div>\n", grid, small);
  body += ledger_section(run) + samples_section(run) + data_section_html(run) + settings_section(run) +
          machine_section(run);
  body +=
      html_section("Checklist", "What to look at before believing the figures above.", checklist_html(run_checks(run)));
  return html_page(run.name + " · brisk", body + footer);
}

std::string report_json(const RunRecord& run) { return facts_json(run, 2); }

}  // namespace brisk
