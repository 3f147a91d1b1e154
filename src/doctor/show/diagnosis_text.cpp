#include "doctor/show/diagnosis_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "base/text/printable.h"
#include "doctor/show/diagnosis_facts.h"
#include "doctor/show/wrapped.h"
#include "report/page/ledger_bars.h"
#include "report/read/run_facts.h"

namespace brisk {

namespace {

std::string heading_text(std::string_view title) { return fmt::format("\n{}\n", title); }

std::string indented(const std::string& lines) {
  std::string all;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at);
    all += "  " + lines.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return all;
}

std::string header_text(const Diagnosis& diagnosis) {
  std::string text = wrapped("", fmt::format("{}: {}", diagnosis.job_name, diagnosis.summary()), 2);
  text += wrapped("", machine_text(diagnosis.before), 2);
  if (diagnosis.seconds > 0) {
    text += wrapped(
        "",
        fmt::format(
            "measured in {}{}{}", format_duration(diagnosis.seconds),
            diagnosis.budget_seconds > 0 ? fmt::format(" of {}", format_duration(diagnosis.budget_seconds)) : "",
            diagnosis.naive ? ", from the naive baseline" : ""),
        2);
  }
  for (const std::string& note : diagnosis.notes) text += wrapped("note: ", note, 6);
  if (const auto missing = missing_parts(diagnosis); !missing.empty()) {
    text += wrapped("", fmt::format("interrupted; missing: {}", fmt::join(missing, ", ")), 2);
  } else if (diagnosis.interrupted) {
    text += "interrupted\n";
  }
  return text;
}

std::string checks_text(const std::vector<Check>& checks) {
  int64_t width = 0;
  for (const Check& check : checks) width = std::max(width, display_width(check.what));
  std::string text;
  for (const Check& check : checks) {
    const std::string start = fmt::format("  {} {}{}  ", mark_text(check.mark), check.what,
                                          std::string(static_cast<size_t>(width - display_width(check.what)), ' '));
    text += wrapped(start, check.numbers, display_width(start));
  }
  return text;
}

std::string examples_text(const std::vector<std::string>& examples) {
  constexpr size_t kMost = 3;
  constexpr int64_t kLongest = 180;
  std::string text;
  for (size_t i = 0; i < std::min(kMost, examples.size()); ++i) {
    text += wrapped(fmt::format("  example {}: ", i + 1), printable(examples[i], kLongest), 13);
  }
  return text;
}

std::string vital_signs_text(const Diagnosis& diagnosis) {
  const std::vector<Check> checks = vital_checks(diagnosis.before);
  if (checks.empty()) return {};
  std::string text = heading_text("VITAL SIGNS") + checks_text(checks);
  return is_uneventful(diagnosis) ? text : text + examples_text(diagnosis.before.vital_signs.examples);
}

std::string phases_text(const Diagnosis& diagnosis) {
  constexpr double kLeast = 0.5;
  const bool has_after = kept_changes(diagnosis) > 0 && is_measured(diagnosis.after);
  const auto of = [](const Readings& readings, const std::string& phase) {
    for (const PhaseShare& each : shares_of(readings.stretch.ledger)) {
      if (each.phase == phase) return each;
    }
    return PhaseShare{phase, 0, 0};
  };
  const auto per_tokens = [](const Readings& readings, double seconds) {
    return readings.stretch.tokens > 0 ? format_duration(1000 * seconds / readings.stretch.tokens) : std::string("–");
  };
  std::vector<Table::Column> columns = {"phase", {"share", Align::right}, {"per 1000 tokens", Align::right}};
  if (has_after) {
    columns.emplace_back("tuned: share", Align::right);
    columns.emplace_back("per 1000 tokens", Align::right);
  }
  Table table(columns);
  const auto add = [&](const std::string& name, const PhaseShare& before, const PhaseShare& after) {
    std::vector<std::string> row = {name, fmt::format("{:.1f} %", before.share),
                                    per_tokens(diagnosis.before, before.seconds)};
    if (has_after) {
      row.push_back(fmt::format("{:.1f} %", after.share));
      row.push_back(per_tokens(diagnosis.after, after.seconds));
    }
    table.add_row(std::move(row));
  };
  PhaseShare rest, rest_after;
  for (int i = 0; i < kPhases; ++i) {
    const std::string phase(phase_name(static_cast<Phase>(i)));
    const PhaseShare before = of(diagnosis.before, phase), after = of(diagnosis.after, phase);
    if (before.share >= kLeast) {
      add(phase_words(phase), before, after);
    } else {
      rest.share += before.share;
      rest.seconds += before.seconds;
      rest_after.share += after.share;
      rest_after.seconds += after.seconds;
    }
  }
  if (rest.share > 0 || rest_after.share >= kLeast) add("all others", rest, rest_after);
  return indented(table.text());
}

std::string lost_text(const Roofline& roofline) {
  std::vector<std::string> losses;
  for (const Roofline::Part& part : roofline.parts) {
    const double share = part.lost() / roofline.seconds;
    if (share >= 0.03 && losses.size() < 4) losses.push_back(fmt::format("{} {}", part.name, words::percent(share)));
  }
  return losses.empty() ? "" : fmt::format("; lost: {}", fmt::join(losses, ", "));
}

std::string speed_text(const char* name, const Readings& readings, bool with_resources) {
  const StretchReadings& stretch = readings.stretch;
  const std::string start = fmt::format("  {:<10}", fmt::format("{}:", name)), margin(start.size(), ' ');
  const auto indent = static_cast<int64_t>(start.size());
  const std::string rows = rows_text(readings);
  std::string text =
      wrapped(start,
              fmt::format("{} real tokens/s, {} sequences/s{}{}", format_count(stretch.tokens_per_second()),
                          format_count(stretch.rows_per_second()), rows.empty() ? "" : "; ", rows),
              indent);
  if (const Roofline roofline = roofline_of(readings); roofline.known()) {
    text += wrapped(margin,
                    fmt::format("{} of the {} tokens/s attainable here{}", words::percent(roofline.share()),
                                format_count(roofline.attainable), lost_text(roofline)),
                    indent);
  }
  if (!with_resources) return text;
  std::vector<std::string> resources;
  for (const auto& [what, value] : resources_of(readings)) resources.push_back(fmt::format("{}: {}", what, value));
  return text + wrapped(margin, fmt::format("{}", fmt::join(resources, "; ")), indent);
}

std::string time_text(const Diagnosis& diagnosis) {
  if (!is_measured(diagnosis.before)) return {};
  std::string text = heading_text("WHERE THE TIME GOES");
  if (!is_uneventful(diagnosis)) text += phases_text(diagnosis);
  const bool tuned = kept_changes(diagnosis) > 0 && is_measured(diagnosis.after);
  text += speed_text(tuned ? "before" : "this job", diagnosis.before, !is_uneventful(diagnosis));
  return tuned ? text + speed_text("tuned", diagnosis.after, true) : text;
}

std::string finding_text(size_t number, const Finding& finding) {
  std::string text = wrapped(fmt::format("  {}. {}: ", number, printable(finding.id)), finding.cause, 5);
  for (const Evidence& each : finding.evidence) {
    text += wrapped("     ",
                    fmt::format("{}: {}{}", each.name, each.value, each.note.empty() ? "" : " (" + each.note + ")"), 7);
  }
  if (finding.fix) {
    text += wrapped("     fix: ", fix_text(*finding.fix), 10);
    if (finding.fix->is_setting() && !finding.fix->advice.empty())
      text += wrapped("          ", finding.fix->advice, 10);
    if (!finding.fix->rule.empty()) text += wrapped("          ", finding.fix->rule, 10);
  }
  std::string effect = sameness_text(finding);
  if (!finding.is_quality) effect = fmt::format("predicted {}; {}", gain_text(finding.predicted_gain), effect);
  return text + wrapped("     ", effect, 7);
}

std::string findings_text(const Diagnosis& diagnosis) {
  if (diagnosis.findings.empty()) return {};
  std::string text = heading_text("FINDINGS");
  for (size_t i = 0; i < diagnosis.findings.size(); ++i) text += finding_text(i + 1, diagnosis.findings[i]);
  return text;
}

std::string ladder_table(const Diagnosis& diagnosis, int64_t step_columns) {
  Table table({"step",
               {"tokens/s", Align::right},
               {"gain, 95 %", Align::right},
               {"total", Align::right},
               {"memory", Align::right},
               {"epoch", Align::right},
               {"loss", Align::right},
               "kept"});
  for (const Rung& rung : diagnosis.ladder) {
    const bool first = &rung == &diagnosis.ladder.front(), measured = is_measured(rung);
    table.add_row({shortened(printable(rung.step, 400), step_columns),
                   measured ? format_count(rung.tokens_per_second) : "–", first ? "" : gain_text(rung),
                   measured ? gain_text(rung.cumulative) : "–",
                   rung.peak_memory_bytes > 0 ? format_bytes(static_cast<double>(rung.peak_memory_bytes)) : "–",
                   rung.epoch_seconds > 0 ? format_duration(rung.epoch_seconds) : "–",
                   fmt::format("{}", words::loss(known(rung.loss))),
                   first       ? ""
                   : rung.kept ? "yes"
                               : "no"});
  }
  return indented(table.text());
}

int64_t widest_line(const std::string& lines) {
  int64_t widest = 0;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at);
    widest = std::max(widest, display_width(std::string_view(lines).substr(at, end - at)));
    at = end + 1;
  }
  return widest;
}

std::string loss_line(const Diagnosis& diagnosis) {
  const Rung& first = diagnosis.ladder.front();
  if (!(first.loss >= 0) || !(first.loss_tokens > 0)) return {};
  std::string text = fmt::format("The loss is that after {} tokens", format_count(first.loss_tokens));
  if (first.loss_spread >= 0)
    text += fmt::format("; repeated runs of the first rung spread by ±{:.4f}", first.loss_spread);
  return wrapped("  ", text + ".", 2);
}

std::string ladder_text(const Diagnosis& diagnosis) {
  if (diagnosis.ladder.size() <= 1) return {};
  constexpr int64_t kLongestStep = 44, kShortestStep = 8;
  std::string table = ladder_table(diagnosis, kLongestStep);
  for (int64_t columns = kLongestStep; widest_line(table) > kColumns && columns > kShortestStep;) {
    table = ladder_table(diagnosis, --columns);
  }
  std::string text = heading_text("THE LADDER") + table + loss_line(diagnosis);
  for (const Rung& rung : diagnosis.ladder) {
    const std::vector<std::string> remarks = remarks_of(diagnosis, rung);
    if (!remarks.empty()) text += wrapped("  ", fmt::format("{}: {}", rung.step, fmt::join(remarks, "; ")), 4);
  }
  return text;
}

std::string not_measured_text(const Diagnosis& diagnosis) {
  if (diagnosis.not_measured.empty()) return {};
  std::string text = heading_text("NOT MEASURED");
  for (const NotMeasured& each : diagnosis.not_measured) {
    text +=
        wrapped("  ", fmt::format("{}: predicted {}; {}", each.step, gain_text(each.predicted_gain), each.reason), 4);
  }
  return text;
}

std::string verification_text(const Diagnosis& diagnosis) {
  if (!diagnosis.verification) return {};
  const Verification& both = *diagnosis.verification;
  const auto side = [](const char* name, const Verification::Side& of) {
    return wrapped("  ",
                   fmt::format("{}: {} an epoch, {} in all, {}", name, format_duration(of.seconds_per_epoch),
                               format_duration(of.seconds), side_text(of)),
                   4);
  };
  return heading_text("BOTH JOBS TO THE END") + side("before", both.before) + side("after", both.after) +
         wrapped("  ", both.verdict, 4);
}

std::string tuned_job_text(const Diagnosis& diagnosis) {
  const std::vector<JobChange> changes = changes_of(diagnosis);
  std::string text;
  if (!changes.empty()) {
    text += heading_text("WHAT THE TUNED JOB CHANGES");
    for (const JobChange& change : changes) {
      text += wrapped("  ",
                      fmt::format("{}: {} -> {}{}", change.key, change.before, change.after,
                                  change.why.empty() ? "" : fmt::format("   ({})", change.why)),
                      4);
    }
  }
  if (diagnosis.command.empty()) return text;
  text += "\n";
  if (!changes.empty()) text += wrapped("write it:  ", apply_command(diagnosis), 11);
  return text + wrapped("repeat it: ", diagnosis.command, 11);
}

}  // namespace

std::string diagnosis_text(const Diagnosis& diagnosis) {
  return header_text(diagnosis) + vital_signs_text(diagnosis) + time_text(diagnosis) + findings_text(diagnosis) +
         ladder_text(diagnosis) + not_measured_text(diagnosis) + verification_text(diagnosis) +
         tuned_job_text(diagnosis);
}

}  // namespace brisk
