#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/terminal/terminal.h"
#include "base/text/printable.h"
#include "doctor/show/diagnosis_facts.h"
#include "doctor/show/diagnosis_text.h"
#include "report/page/ledger_bars.h"
#include "report/read/run_facts.h"

namespace brisk {

namespace {

constexpr int64_t kLongestInMarkdown = 2000;

// Text that came from outside: on one line, and nothing in it is Markdown or HTML.
std::string markdown(std::string_view text) {
  constexpr std::string_view kSpecial = "\\`*_{}[]<>|#~&!";
  std::string safe;
  for (const char letter : printable(text, kLongestInMarkdown)) {
    if (kSpecial.find(letter) != std::string_view::npos) safe += '\\';
    safe += letter;
  }
  return safe;
}

// The same as code: between more backticks than stand in it. A bar would end a table's cell.
std::string markdown_code(std::string_view text) {
  std::string shown = printable(text, kLongestInMarkdown), fence = "`";
  while (shown.find(fence) != std::string::npos) fence += '`';
  for (size_t at = 0; (at = shown.find('|', at)) != std::string::npos; at += 2) shown.insert(at, "\\");
  const std::string space = fence.size() > 1 || shown.empty() ? " " : "";
  return fence + space + shown + space + fence;
}

std::string markdown_heading(std::string_view title) { return fmt::format("\n## {}\n\n", title); }

std::string markdown_row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

// `text_columns` at the left, the others are numbers.
std::string markdown_header(const std::vector<std::string>& titles, size_t text_columns) {
  std::vector<std::string> rules;
  for (size_t i = 0; i < titles.size(); ++i) rules.emplace_back(i < text_columns ? "---" : "---:");
  return markdown_row(titles) + markdown_row(rules);
}

std::string markdown_checks(const std::vector<Check>& checks) {
  std::string text;
  for (const Check& check : checks) {
    text += fmt::format("- {} {}: {}\n", mark_text(check.mark), markdown(check.what), markdown(check.numbers));
  }
  return text;
}

std::string markdown_top(const Diagnosis& diagnosis) {
  std::string text = fmt::format("# {}: {}\n\n{}", markdown(diagnosis.job_name), markdown(diagnosis.summary()),
                                 markdown(machine_text(diagnosis.before)));
  if (diagnosis.seconds > 0) text += fmt::format("; measured in {}", format_duration(diagnosis.seconds));
  text += diagnosis.naive ? ", from the naive baseline.\n" : ".\n";
  for (const std::string& note : diagnosis.notes) text += fmt::format("\n> {}\n", markdown(note));
  if (diagnosis.interrupted) {
    text += fmt::format("\n> Interrupted. Missing: {}\n", fmt::join(missing_parts(diagnosis), ", "));
  }
  return text;
}

std::string markdown_time(const Diagnosis& diagnosis) {
  if (!is_measured(diagnosis.before)) return {};
  std::string text = markdown_heading("Where the time goes") + markdown_header({"phase", "share"}, 1);
  double rest = 0;
  for (const PhaseShare& phase : shares_of(diagnosis.before.stretch.ledger)) {
    if (phase.share < 0.5) {
      rest += phase.share;
    } else {
      text += markdown_row({phase_words(phase.phase), fmt::format("{:.1f} %", phase.share)});
    }
  }
  if (rest > 0) text += markdown_row({"all others", fmt::format("{:.1f} %", rest)});
  text += fmt::format("\n{} real tokens/s", format_count(diagnosis.before.stretch.tokens_per_second()));
  if (const std::string rows = rows_text(diagnosis.before); !rows.empty()) text += "; " + rows;
  if (const Roofline roofline = roofline_of(diagnosis.before); roofline.known()) {
    text += fmt::format("; attainable here are {} tokens/s, of which it reaches {}", format_count(roofline.attainable),
                        words::percent(roofline.share()));
  }
  text += ".\n\n";
  for (const auto& [name, value] : resources_of(diagnosis.before)) {
    text += fmt::format("- {}: {}\n", markdown(name), markdown(value));
  }
  return text;
}

std::string markdown_findings(const Diagnosis& diagnosis) {
  if (diagnosis.findings.empty()) return {};
  std::string text = markdown_heading("Findings");
  for (size_t i = 0; i < diagnosis.findings.size(); ++i) {
    const Finding& finding = diagnosis.findings[i];
    text += fmt::format("{}. **{}**: {}\n", i + 1, markdown(finding.id), markdown(finding.cause));
    for (const Evidence& each : finding.evidence) {
      text += fmt::format("   - {}: {}{}\n", markdown(each.name), markdown(each.value),
                          each.note.empty() ? "" : " (" + markdown(each.note) + ")");
    }
    if (finding.fix) {
      const Fix& fix = *finding.fix;
      text += fmt::format("   - fix: {}{}\n", fix.is_setting() ? markdown_code(fix_text(fix)) : markdown(fix.advice),
                          fix.rule.empty() ? "" : " (" + markdown(fix.rule) + ")");
    }
    text += fmt::format("   - {}{}\n",
                        finding.is_quality ? "" : fmt::format("predicted {}; ", gain_text(finding.predicted_gain)),
                        markdown(sameness_text(finding)));
  }
  return text;
}

std::string markdown_ladder(const Diagnosis& diagnosis) {
  if (diagnosis.ladder.size() <= 1) return {};
  std::string text = markdown_heading("The ladder");
  text += markdown_header({"step", "kept", "tokens/s", "gain, 95 %", "total", "peak memory", "epoch", "loss"}, 2);
  std::string remarks;
  for (const Rung& rung : diagnosis.ladder) {
    const bool first = &rung == &diagnosis.ladder.front(), measured = is_measured(rung);
    text += markdown_row({markdown(rung.step),
                          first       ? ""
                          : rung.kept ? "✓"
                                      : "✗",
                          measured ? format_count(rung.tokens_per_second) : "–", first ? "" : markdown(gain_text(rung)),
                          measured ? gain_text(rung.cumulative) : "–",
                          rung.peak_memory_bytes > 0 ? format_bytes(static_cast<double>(rung.peak_memory_bytes)) : "–",
                          rung.epoch_seconds > 0 ? format_duration(rung.epoch_seconds) : "–",
                          words::loss(known(rung.loss))});
    if (const std::vector<std::string> of_rung = remarks_of(diagnosis, rung); !of_rung.empty()) {
      remarks += fmt::format("- {}: {}\n", markdown(rung.step), markdown(fmt::format("{}", fmt::join(of_rung, "; "))));
    }
  }
  return remarks.empty() ? text : text + "\n" + remarks;
}

std::string markdown_not_measured(const Diagnosis& diagnosis) {
  if (diagnosis.not_measured.empty()) return {};
  std::string text = markdown_heading("Not measured");
  for (const NotMeasured& each : diagnosis.not_measured) {
    text += fmt::format("- {}: predicted {}; {}\n", markdown(each.step), gain_text(each.predicted_gain),
                        markdown(each.reason));
  }
  return text;
}

std::string markdown_verification(const Diagnosis& diagnosis) {
  if (!diagnosis.verification) return {};
  const Verification& both = *diagnosis.verification;
  std::string text = markdown_heading("Both jobs to the end");
  text += markdown_header({"job", "quality", "time per epoch", "in all"}, 2);
  for (const auto& [name, side] : {std::pair("before", &both.before), std::pair("after", &both.after)}) {
    text += markdown_row(
        {name, markdown(side_text(*side)), format_duration(side->seconds_per_epoch), format_duration(side->seconds)});
  }
  return text + "\n" + markdown(both.verdict) + "\n";
}

std::string markdown_tuned_job(const Diagnosis& diagnosis) {
  std::string text;
  const std::vector<JobChange> changes = changes_of(diagnosis);
  if (!changes.empty()) {
    text += markdown_heading("What the tuned job changes") + markdown_header({"key", "before", "after", "why"}, 4);
    for (const JobChange& change : changes) {
      text += markdown_row(
          {markdown_code(change.key), markdown_code(change.before), markdown_code(change.after), markdown(change.why)});
    }
  }
  if (diagnosis.command.empty()) return text;
  text += markdown_heading("How to repeat it");
  if (!changes.empty()) text += fmt::format("- write the tuned job: {}\n", markdown_code(apply_command(diagnosis)));
  return text + fmt::format("- repeat the diagnosis: {}\n", markdown_code(diagnosis.command));
}

}  // namespace

std::string diagnosis_markdown(const Diagnosis& diagnosis) {
  std::string text = markdown_top(diagnosis);
  if (const auto checks = vital_checks(diagnosis.before); !checks.empty()) {
    text += markdown_heading("Vital signs") + markdown_checks(checks);
  }
  return text + markdown_time(diagnosis) + markdown_findings(diagnosis) + markdown_ladder(diagnosis) +
         markdown_not_measured(diagnosis) + markdown_verification(diagnosis) + markdown_tuned_job(diagnosis);
}

}  // namespace brisk
