#include "doctor/show/diagnosis_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "doctor/show/diagnosis_facts.h"
#include "report/page/bar_chart.h"
#include "report/page/checklist.h"
#include "report/page/html.h"
#include "report/page/ledger_bars.h"
#include "report/read/run_facts.h"

namespace brisk {

namespace {

// In the colours of the page's lines.
constexpr int kNeutralColour = 8, kBeforeColour = 2, kTunedColour = 3;

bool has_tuned(const Diagnosis& diagnosis) { return kept_changes(diagnosis) > 0 && is_measured(diagnosis.after); }

Html header_html(const Diagnosis& diagnosis) {
  std::string how;
  if (diagnosis.seconds > 0) how = "measured in " + format_duration(diagnosis.seconds);
  if (diagnosis.naive) how += how.empty() ? "from the naive baseline" : ", from the naive baseline";
  return html("<header><h1>{}{}</h1>\n<p class=\"lead\">{}</p>\n{}</header>\n", diagnosis.job_name,
              html("<span class=\"pill {}\">{}</span>", diagnosis.interrupted ? "warn" : "good", diagnosis.summary()),
              machine_text(diagnosis.before), how.empty() ? Html() : html("<p class=\"lead\">{}</p>\n", how));
}

Tile loss_tile(const Diagnosis& diagnosis, const Rung& tuned) {
  const Rung& first = diagnosis.ladder.front();
  const std::string spread = first.loss_spread >= 0 ? fmt::format(" ± {:.4f}", first.loss_spread) : "";
  return {
      "loss", words::loss(known(tuned.loss)),
      fmt::format("was {}{} after {} tokens", words::loss(known(first.loss)), spread, format_count(first.loss_tokens))};
}

Html headline_tiles(const Diagnosis& diagnosis) {
  const Rung* tuned = tuned_rung(diagnosis);
  if (tuned == nullptr) return {};
  const Rung& first = diagnosis.ladder.front();
  const int64_t kept = kept_changes(diagnosis);
  std::vector<Tile> tiles;
  const auto was = [&](std::string before) { return kept > 0 ? "was " + before : std::string("as written"); };
  if (kept > 0) tiles.push_back({"faster", gain_text(tuned->cumulative), "with " + plural(kept, "change")});
  tiles.push_back(
      {"tokens/s", words::rate(known(tuned->tokens_per_second)), was(words::rate(known(first.tokens_per_second)))});
  tiles.push_back({"time per epoch", tuned->epoch_seconds > 0 ? format_duration(tuned->epoch_seconds) : "–",
                   was(first.epoch_seconds > 0 ? format_duration(first.epoch_seconds) : "–")});
  const Roofline roofline = roofline_of(has_tuned(diagnosis) ? diagnosis.after : diagnosis.before);
  if (roofline.known()) {
    tiles.push_back({"of what is attainable", words::percent(roofline.share()),
                     format_count(roofline.attainable) + " tokens/s on this machine"});
  }
  if (tuned->peak_memory_bytes > 0) {
    tiles.push_back(
        {"peak memory", format_bytes(static_cast<double>(tuned->peak_memory_bytes)),
         was(first.peak_memory_bytes > 0 ? format_bytes(static_cast<double>(first.peak_memory_bytes)) : "–")});
  }
  if (kept > 0 && tuned->loss >= 0 && first.loss >= 0) tiles.push_back(loss_tile(diagnosis, *tuned));
  return html_tiles(tiles);
}

std::string rung_detail(const Rung& rung, bool first) {
  if (first) return "the baseline";
  if (!rung.kept) return "not kept: " + rung.verdict;
  return fmt::format("{}; in all {}", gain_text(rung), gain_text(rung.cumulative));
}

Bar rung_bar(const Rung& rung, bool first) {
  Bar bar{.name = rung.step,
          .value = rung.tokens_per_second,
          .text = is_measured(rung) ? format_count(rung.tokens_per_second) : "–",
          .detail = rung_detail(rung, first),
          .colour = first ? kBeforeColour : kTunedColour,
          .pale = !first && !rung.kept};
  if (!first && rung.gain > 0) {  // the interval is of the gain, whose unit is the last rung that was kept
    bar.low = rung.tokens_per_second * rung.gain_low / rung.gain;
    bar.high = rung.tokens_per_second * rung.gain_high / rung.gain;
  }
  return bar;
}

Html ladder_table_html(const Diagnosis& diagnosis) {
  HtmlTable table;
  table.numbers = true;
  table.header = {"step",        "tokens/s",    "sequences/s", "gain, 95 %", "in all", "predicted",
                  "utilisation", "peak memory", "epoch",       "loss",       "kept"};
  for (const Rung& rung : diagnosis.ladder) {
    const bool first = &rung == &diagnosis.ladder.front(), measured = is_measured(rung);
    const auto if_above_zero = [](double value, auto words_of) {
      return value > 0 ? words_of(value) : std::string("–");
    };
    table.rows.push_back({html("<span class=\"step\">{}</span>", rung.step),
                          if_above_zero(rung.tokens_per_second, words::rate),
                          if_above_zero(rung.rows_per_second, words::rate), first ? "" : gain_text(rung),
                          measured ? gain_text(rung.cumulative) : "–", first ? "" : gain_text(rung.predicted_gain),
                          if_above_zero(rung.utilisation, words::percent),
                          if_above_zero(static_cast<double>(rung.peak_memory_bytes), words::bytes),
                          if_above_zero(rung.epoch_seconds, words::duration), words::loss(known(rung.loss)),
                          first       ? Html()
                          : rung.kept ? html("<b class=\"best\">✓</b>")
                                      : html("<span class=\"dim\">✗</span>")});
  }
  return html_table(table);
}

Html proofs_html(const Diagnosis& diagnosis) {
  HtmlTable table;
  table.header = {"step", "verdict", "one optimizer step compared"};
  for (size_t i = 1; i < diagnosis.ladder.size(); ++i) {
    const Rung& rung = diagnosis.ladder[i];
    table.rows.push_back({html("<span class=\"step\">{}</span>", rung.step),
                          html("<span class=\"value\">{}{}</span>", rung.verdict,
                               rung.interleaved ? "" : " (measured one after the other)"),
                          html("<span class=\"value\">{}</span>", proof_text(rung))});
  }
  return html("<details><summary>verdicts and proofs</summary>\n{}</details>\n", html_table(table));
}

Html ladder_section(const Diagnosis& diagnosis) {
  if (diagnosis.ladder.size() <= 1) return {};
  std::vector<Bar> bars;
  for (const Rung& rung : diagnosis.ladder) bars.push_back(rung_bar(rung, &rung == &diagnosis.ladder.front()));
  return html_section(
      "The ladder",
      "Tokens per second, each rung with one change more than the last that was kept. The whisker is the "
      "95 % interval; pale bars were not kept.",
      bar_chart_html(bars) + ladder_table_html(diagnosis) + proofs_html(diagnosis));
}

Html ledger_section_of(const Diagnosis& diagnosis) {
  if (!is_measured(diagnosis.before)) return {};
  const auto bar = [](const char* name, const Readings& readings) {
    const StretchReadings& stretch = readings.stretch;
    return LedgerBar{
        name, stretch.tokens > 0 ? format_duration(1000 * stretch.seconds / stretch.tokens) + " per 1000 tokens" : "",
        phase_seconds_of(stretch.ledger)};
  };
  std::vector<LedgerBar> bars = {bar(has_tuned(diagnosis) ? "before" : "this job", diagnosis.before)};
  if (has_tuned(diagnosis)) bars.push_back(bar("tuned", diagnosis.after));
  const auto table = [](const Readings& readings) {
    return ledger_table_html(phase_seconds_of(readings.stretch.ledger), static_cast<double>(readings.stretch.steps));
  };
  std::vector<std::pair<std::string, Html>> tables = {{"before", table(diagnosis.before)}};
  if (has_tuned(diagnosis)) tables.emplace_back("tuned", table(diagnosis.after));
  return html_section("Where the time goes", "Every nanosecond of the measured steps belongs to one phase.",
                      ledger_bars_html(bars) + ledger_legend_html(bars) + html_choice("ledger", tables));
}

Html resources_section(const Diagnosis& diagnosis) {
  const auto before = resources_of(diagnosis.before);
  if (before.empty()) return {};
  const auto after = has_tuned(diagnosis) ? resources_of(diagnosis.after) : before;
  HtmlTable table;
  table.header = has_tuned(diagnosis) ? std::vector<Html>{"", "before", "tuned"} : std::vector<Html>{"", "this job"};
  for (const auto& [name, value] : before) {
    table.rows.push_back({name, value});
    if (!has_tuned(diagnosis)) continue;
    const auto same = std::find_if(after.begin(), after.end(), [&](const auto& each) { return each.first == name; });
    table.rows.back().push_back(same != after.end() ? same->second : "–");
  }
  return html_section("What the machine did", "During the measured steps.", html_table(table));
}

Html roofline_table(const Roofline& roofline) {
  HtmlTable table;
  table.numbers = true;
  table.header = {"part", "lost", "time", "attainable", "lost time"};
  for (const Roofline::Part& part : roofline.parts) {
    if (part.seconds < 0.002 * roofline.seconds) continue;
    table.rows.push_back(
        {part.name, fmt::format("{:.1f} %", 100 * part.lost() / roofline.seconds), format_duration(part.seconds),
         part.attainable_seconds > 0 ? format_duration(part.attainable_seconds) : "–", format_duration(part.lost())});
  }
  return html_table(table);
}

Html roofline_section(const Diagnosis& diagnosis) {
  const Roofline before = roofline_of(diagnosis.before);
  const Roofline after = has_tuned(diagnosis) ? roofline_of(diagnosis.after) : Roofline();
  if (!before.known()) return {};
  const auto bar = [](const char* name, double value, int colour, bool pale) {
    return Bar{.name = name, .value = value, .text = format_count(value), .colour = colour, .pale = pale};
  };
  std::vector<Bar> bars = {bar("attainable", before.attainable, kNeutralColour, true),
                           bar(after.known() ? "before" : "this job", before.achieved, kBeforeColour, false)};
  std::vector<std::pair<std::string, Html>> tables = {{"before", roofline_table(before)}};
  if (after.known()) {
    // Another precision or batch has another roof.
    if (std::abs(after.attainable / before.attainable - 1) > 0.02) {
      bars.front().name = "attainable, before";
      bars.push_back(bar("attainable, tuned", after.attainable, kNeutralColour, true));
    }
    bars.push_back(bar("tuned", after.achieved, kTunedColour, false));
    tables.emplace_back("tuned", roofline_table(after));
  }
  const Readings& readings = diagnosis.before;
  const auto rate = readings.machine.product_gflops.find(readings.model.precision);
  return html_section(
      "What this machine could do",
      fmt::format(
          "Real tokens per second. Attainable: the model's {} FLOP per token at the {:.0f} GFLOP/s that large {} "
          "products reach here{}.",
          format_count(readings.model.flop_per_token), rate->second, readings.model.precision,
          readings.machine.memory_gb_per_second > 0
              ? fmt::format(", the optimizer's bytes at {:.1f} GB/s", readings.machine.memory_gb_per_second)
              : ""),
      bar_chart_html(bars) + html_choice("roofline", tables));
}

// One bar for each point; that of the job as written is in another colour.
Html curve_section(const char* title, const char* why, const std::vector<CurvePoint>& curve, const char* noun,
                   double own, const char* nouns = "") {
  std::vector<Bar> bars;
  for (const CurvePoint& point : curve) {
    if (!std::isfinite(point.x)) continue;
    std::string detail = point.memory_bytes > 0 ? format_bytes(static_cast<double>(point.memory_bytes)) : "";
    if (point.x == own) detail += detail.empty() ? "the job as written" : ", the job as written";
    bars.push_back({.name = fmt::format("{:g} {}", point.x, plural_noun(point.x == 1 ? 1 : 2, noun, nouns)),
                    .value = point.tokens_per_second,
                    .text = point.tokens_per_second > 0 ? format_count(point.tokens_per_second) : "did not run",
                    .detail = detail,
                    .colour = point.x == own ? kBeforeColour : 1});
  }
  return bars.empty() ? Html() : html_section(title, why, bar_chart_html(bars));
}

Html rate_section(const std::vector<CurvePoint>& curve) {
  std::vector<Bar> bars;
  for (const CurvePoint& point : curve) {
    if (!std::isfinite(point.x)) continue;
    bars.push_back(
        {.name = point.x == 1 ? std::string("the job's own rate") : fmt::format("{:g} times the rate", point.x),
         .value = point.loss,
         .text = point.loss >= 0 ? words::loss(point.loss) : "diverged",
         .colour = point.x == 1 ? kBeforeColour : 1});
  }
  return bars.empty() ? Html()
                      : html_section("Learning rate", "Loss at the end of a short run; shorter is better.",
                                     bar_chart_html(bars));
}

Html lengths_section(const DataReadings& data) {
  if (data.lengths.empty()) return {};
  constexpr size_t kMostBars = 16;
  const size_t together = (data.lengths.size() + kMostBars - 1) / kMostBars;
  std::vector<Bar> bars;
  for (size_t i = 0; i < data.lengths.size(); i += together) {
    const size_t last = std::min(i + together, data.lengths.size()) - 1;
    int64_t sequences = 0;
    for (size_t at = i; at <= last; ++at) sequences += data.lengths[at].sequences;
    bars.push_back({.name = fmt::format("{} to {} tokens", data.lengths[i].first, data.lengths[last].last),
                    .value = static_cast<double>(sequences),
                    .text = words::exact(static_cast<double>(sequences)),
                    .colour = 5});
  }
  return html_section("Lengths", lengths_text(data), bar_chart_html(bars));
}

Html vital_signs_section(const Diagnosis& diagnosis) {
  const std::vector<Check> checks = vital_checks(diagnosis.before);
  if (checks.empty()) return {};
  Html examples;
  for (const std::string& example : diagnosis.before.vital_signs.examples) {
    examples += html("<div class=\"sample\"><p>{}</p></div>\n", example);
  }
  if (!examples.empty()) examples = html("<h3>The first examples, as the model sees them</h3>\n{}", examples);
  return html_section("Vital signs", "Of the job as measured first.", checklist_html(checks) + examples);
}

Html fix_html(const Fix& fix) {
  Html text = fix.is_setting() ? html("<code>{}</code>", fix_text(fix)) : Html(fix.advice);
  if (fix.is_setting() && !fix.advice.empty()) text += html(" {}", fix.advice);
  if (!fix.rule.empty()) text += html(" <span class=\"dim\">{}</span>", fix.rule);
  return html("<p><b>Fix:</b> {}</p>\n", text);
}

Html finding_html(size_t number, const Finding& finding) {
  Html evidence;
  for (const Evidence& each : finding.evidence) {
    evidence += html("<li>{}: <b>{}</b>{}</li>", each.name, each.value,
                     each.note.empty() ? Html() : html(" <span class=\"dim\">{}</span>", each.note));
  }
  const char* kind = finding.sameness == Sameness::changes_maths ? "warn" : "good";
  const Html gain = finding.is_quality
                        ? html("<span class=\"pill busy\">quality</span>")
                        : html("<span class=\"pill busy\">predicted {}</span>", gain_text(finding.predicted_gain));
  return html(
      "<article class=\"finding\"><h3>{}. {} {} <span class=\"pill {}\">{}</span></h3>\n<p>{}</p>\n{}{}{}</article>\n",
      number, finding.id, gain, kind, sameness_text(finding.sameness), finding.cause,
      evidence.empty() ? Html() : html("<ul>{}</ul>\n", evidence), finding.fix ? fix_html(*finding.fix) : Html(),
      finding.change.empty() ? Html()
                             : html("<p class=\"why\">What is another training then: {}</p>\n", finding.change));
}

Html findings_section(const Diagnosis& diagnosis) {
  Html body;
  for (size_t i = 0; i < diagnosis.findings.size(); ++i) body += finding_html(i + 1, diagnosis.findings[i]);
  if (body.empty() && is_uneventful(diagnosis)) body = html("<p>Nothing worth changing.</p>\n");
  return body.empty()
             ? Html()
             : html_section("Findings", "The largest predicted gain first; what is about quality comes last.", body);
}

Html not_measured_section(const Diagnosis& diagnosis) {
  if (diagnosis.not_measured.empty()) return {};
  HtmlTable table;
  table.header = {"step", "predicted", "why not"};
  for (const NotMeasured& each : diagnosis.not_measured) {
    table.rows.push_back({html("<span class=\"step\">{}</span>", each.step), gain_text(each.predicted_gain),
                          html("<span class=\"value\">{}</span>", each.reason)});
  }
  return html_section("Not measured", "", html_table(table));
}

Html verification_section(const Diagnosis& diagnosis) {
  if (!diagnosis.verification) return {};
  const Verification& both = *diagnosis.verification;
  HtmlTable table;
  table.header = {"", "before", "after", "faster"};
  const auto add = [&](const char* name, double before, double after, double faster, auto words_of) {
    table.rows.push_back({name, words_of(before), words_of(after), words::ratio(faster)});
  };
  const Verification::Side &before = both.before, &after = both.after;
  add("time per epoch", before.seconds_per_epoch, after.seconds_per_epoch,
      before.seconds_per_epoch / after.seconds_per_epoch, words::duration);
  add("time in all", before.seconds, after.seconds, before.seconds / after.seconds, words::duration);
  add("tokens/s", before.tokens_per_second, after.tokens_per_second, after.tokens_per_second / before.tokens_per_second,
      words::rate);
  const auto quality = [](double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "–"; };
  const auto interval = [&](const Verification::Side& side) {
    return side.low < side.high ? fmt::format("{} to {}", quality(side.low), quality(side.high)) : "–";
  };
  table.rows.push_back({before.metric, quality(before.value), quality(after.value), ""});
  table.rows.push_back({"95 % interval", interval(before), interval(after), ""});
  return html_section("Both jobs to the end", both.verdict, html_table(table));
}

Html changes_section(const Diagnosis& diagnosis) {
  const std::vector<JobChange> changes = changes_of(diagnosis);
  if (changes.empty()) return {};
  HtmlTable table;
  table.header = {"key", "before", "after"};
  for (const JobChange& change : changes) {
    table.rows.push_back(
        {html("<span class=\"step\"><span class=\"mono\">{}</span><br><small class=\"dim\">{}</small></span>",
              change.key, change.why),
         html("<span class=\"mono value\">{}</span>", change.before),
         html("<span class=\"mono value\">{}</span>", change.after)});
  }
  const Html job =
      diagnosis.tuned_text.empty()
          ? Html()
          : html("<details><summary>the tuned job</summary>\n<pre>{}</pre></details>\n", diagnosis.tuned_text);
  return html_section("What the tuned job changes", "", html_table(table) + job);
}

Html repeat_section(const Diagnosis& diagnosis) {
  if (diagnosis.command.empty()) return {};
  Html body = html("<pre>{}</pre>\n", diagnosis.command);
  if (kept_changes(diagnosis) > 0) {
    body +=
        html("<p class=\"why\">The same, and the tuned job as a file:</p>\n<pre>{}</pre>\n", apply_command(diagnosis));
  }
  return html_section("How to repeat it", "", body);
}

std::vector<std::string> page_notes(const Diagnosis& diagnosis) {
  std::vector<std::string> notes = diagnosis.notes;
  const std::vector<std::string> missing = missing_parts(diagnosis);
  if (!missing.empty()) {
    notes.insert(notes.begin(), fmt::format("The diagnosis was interrupted. Missing: {}.", fmt::join(missing, ", ")));
  } else if (diagnosis.interrupted) {
    notes.insert(notes.begin(), "The diagnosis was interrupted.");
  }
  return notes;
}

}  // namespace

std::string diagnosis_page(const Diagnosis& diagnosis) {
  const Readings& before = diagnosis.before;
  Html body = header_html(diagnosis) + html_notes(page_notes(diagnosis)) + headline_tiles(diagnosis);
  body += ladder_section(diagnosis) + findings_section(diagnosis) + ledger_section_of(diagnosis) +
          roofline_section(diagnosis) + resources_section(diagnosis);
  body += curve_section("Batch size", "Tokens per second by the sequences of a micro-batch.", before.batch_curve,
                        "sequence", static_cast<double>(before.job.training.batch_size));
  body += curve_section("Threads", "Tokens per second by the threads that compute.", before.thread_curve, "thread",
                        static_cast<double>(before.job.training.threads));
  body += curve_section("Processes", "Tokens per second by the processes that share the cores.", before.process_curve,
                        "process", 1, "processes");
  body += rate_section(before.rate_curve) + lengths_section(before.data) + vital_signs_section(diagnosis);
  body += not_measured_section(diagnosis) + verification_section(diagnosis) + changes_section(diagnosis);
  if (const std::vector<Check> checks = diagnosis_checks(diagnosis); !checks.empty()) {
    body += html_section("Checklist", has_tuned(diagnosis) ? "Of the tuned job." : "Of the job as measured.",
                         checklist_html(checks));
  }
  body += repeat_section(diagnosis);
  body += html("<footer>{}written by <code>brisk doctor</code></footer>\n",
               diagnosis.job_path.empty() ? "" : diagnosis.job_path + " · ");
  return html_page(diagnosis.job_name + " · brisk doctor", body);
}

}  // namespace brisk
