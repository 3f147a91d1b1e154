#include "train/record/run_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/metrics.h"
#include "base/terminal/terminal.h"

namespace brisk {

namespace {

// Of rows or sequences, of which there may be less than one a second.
std::string rate_text(double per_second) { return fmt::format("{:.{}f}", per_second, per_second < 100 ? 1 : 0); }

}  // namespace

std::string model_line(const std::vector<ComponentCost>& costs) {
  double flop = 0;
  int64_t parameters = 0;
  for (const ComponentCost& cost : costs) {
    flop += cost.flop_per_token;
    parameters += cost.parameters;
  }
  std::vector<std::string> parts, shares;
  for (const ComponentCost& cost : costs) {
    constexpr double kShown = 0.005;
    if (static_cast<double>(cost.parameters) > kShown * static_cast<double>(parameters)) {
      parts.push_back(fmt::format("{} {}", cost.component, format_count(static_cast<double>(cost.parameters))));
    }
    if (cost.flop_per_token > kShown * flop) {
      shares.push_back(fmt::format("{} {:.0f} %", cost.component, 100 * cost.flop_per_token / flop));
    }
  }
  return fmt::format("{} parameters ({}); {:.1f} MFLOP a token ({})", format_count(static_cast<double>(parameters)),
                     fmt::join(parts, ", "), 1e-6 * flop, fmt::join(shares, ", "));
}

namespace {

// What a plan is made of; parts that take nothing are left out.
std::vector<std::pair<std::string, int64_t>> memory_parts(const MemoryPlan& plan) {
  std::vector<std::pair<std::string, int64_t>> parts = {
      {"weights (fp32 masters)", plan.state.masters},
      {"weights (copies in the compute format)", plan.state.copies},
      {"gradients", plan.state.gradients},
      {"optimizer (moments)", plan.state.moments},
      {"optimizer (workspace)", plan.optimizer_bytes},
      // Where logits are made, activations that are needed no more lie at other times: the arena is planned as one.
      {"activations", plan.activation_bytes - plan.batch_bytes - plan.loss_bytes},
      {"loss (logits of a chunk of rows)", plan.loss_bytes},
      {"batch", plan.batch_bytes},
      {"evaluation", plan.evaluation_bytes},
      {"workspaces (matrix products and other ops)", plan.workspace_bytes}};
  std::erase_if(parts, [](const auto& part) { return part.second <= 0; });
  return parts;
}

}  // namespace

std::string memory_line(const MemoryPlan& plan) {
  const auto text = [](int64_t bytes) { return format_bytes(static_cast<double>(bytes)); };
  const int64_t weights = plan.state.masters + plan.state.copies, optimizer = plan.state.moments + plan.optimizer_bytes;
  std::string line = fmt::format("{} planned: weights {}, gradients {}, optimizer {}, activations {}",
                                 text(plan.total()), text(weights), text(plan.state.gradients), text(optimizer),
                                 text(plan.activation_bytes + plan.workspace_bytes));
  if (plan.evaluation_bytes > 0) line += ", evaluation " + text(plan.evaluation_bytes);
  if (plan.copy_bytes > 0) line += fmt::format("; and a copy of {} to save from", text(plan.copy_bytes));
  return line;
}

std::string memory_table(const MemoryPlan& plan) {
  Table table({"memory", {"bytes", Align::right}});
  const auto add = [&](const std::string& what, int64_t bytes) {
    if (bytes > 0) table.add_row({what, format_bytes(static_cast<double>(bytes))});
  };
  for (const auto& [what, bytes] : memory_parts(plan)) add(what, bytes);
  table.add_separator();
  table.add_row({"total", format_bytes(static_cast<double>(plan.total()))});
  add("not in the total: cuDNN attention, if memory allows", plan.library_bytes);
  return table.text();
}

double training_seconds(const Ledger::Totals& totals) {
  return totals.seconds() - totals.seconds(Phase::start_up) - totals.seconds(Phase::evaluation) -
         totals.seconds(Phase::checkpoint);
}

double epoch_seconds(const PhaseSeconds& ledger) {
  double seconds = 0;
  for (const auto& [phase, of_phase] : ledger) {
    if (phase != phase_name(Phase::start_up) && phase != phase_name(Phase::checkpoint)) seconds += of_phase;
  }
  return seconds;
}

PhaseSeconds phases_of(const Ledger::Totals& totals) {
  PhaseSeconds ledger;
  for (int i = 0; i < kPhases; ++i) {
    const Phase phase = static_cast<Phase>(i);
    if (totals.seconds(phase) > 0) ledger.emplace_back(phase_name(phase), totals.seconds(phase));
  }
  return ledger;
}

std::string ledger_table(const Ledger::Totals& totals, const Speed& speed) {
  return ledger_table(phases_of(totals), speed, totals.sampled);
}

std::string ledger_table(const PhaseSeconds& ledger, const Speed& speed, bool sampled) {
  Table table({"phase", {"seconds", Align::right}, {"share", Align::right}, {"ms/step", Align::right}});
  double all = 0;
  for (const auto& [phase, seconds] : ledger) all += seconds;
  const double steps = static_cast<double>(std::max<int64_t>(1, speed.steps));
  const auto add = [&](const std::string& name, double seconds) {
    table.add_row({name, fmt::format("{:.2f}", seconds), fmt::format("{:.1f} %", 100 * seconds / all),
                   fmt::format("{:.2f}", 1e3 * seconds / steps)});
  };
  constexpr double kShown = 0.005;
  std::vector<std::string> small;
  double in_small = 0;
  for (const auto& [phase, seconds] : ledger) {
    if (seconds <= 0) continue;
    if (seconds >= kShown * all) {
      add(phase, seconds);
    } else {
      small.push_back(phase);
      in_small += seconds;
    }
  }
  if (small.size() == 1) add(small.front(), in_small);
  if (small.size() > 1) add(fmt::format("{} small ones", small.size()), in_small);
  table.add_separator();
  table.add_row({"wall time", fmt::format("{:.2f}", all), "100.0 %", fmt::format("{:.2f}", 1e3 * all / steps)});
  if (!sampled) return table.text();
  return table.text() + "(GPU phases are estimated from occasional steps that are timed op by op)\n";
}

std::string shares_text(const Ledger::Totals& totals) {
  double forward = 0, backward = 0;
  for (const OpFamily family :
       {OpFamily::embedding, OpFamily::linear, OpFamily::attention, OpFamily::norm, OpFamily::elementwise}) {
    forward += totals.seconds(forward_phase(family));
    backward += totals.seconds(backward_phase(family));
  }
  const double loss = totals.seconds(Phase::loss);
  const double optimizer = totals.seconds(Phase::clipping) + totals.seconds(Phase::optimizer);
  const double all = std::max(1e-9, epoch_seconds(phases_of(totals)));
  const auto percent = [&](double seconds) { return fmt::format("{:.0f} %", 100 * seconds / all); };
  return fmt::format("forward {}, loss {}, backward {}, optimizer {}, rest {}", percent(forward), percent(loss),
                     percent(backward), percent(optimizer),
                     percent(std::max(0.0, all - forward - backward - loss - optimizer)));
}

std::string epoch_line(const EpochRow& row, int64_t epochs, const Ledger::Totals& totals, const std::string& best_by,
                       bool best) {
  const bool evaluated = row.evaluation && row.evaluation->step == row.step;
  std::string others;
  for (const auto& [name, value] :
       {std::pair("perplexity", row.training_perplexity), std::pair("accuracy", row.training_accuracy)}) {
    const Metric metric = standard_metric(name, value);
    if (std::isfinite(value)) others += fmt::format(", {} {}", metric.title(), metric.text());
  }
  const std::string part = row.share < 1 ? fmt::format(" ({:.0f} % of it)", 100 * row.share) : "";
  return fmt::format(
      "epoch {}/{}{}: loss {:.4f}{}{}{}; {} tokens/s, {}: {}", row.epoch, epochs, part, row.training_loss, others,
      row.since_step > 0 ? fmt::format(" (since step {})", row.since_step) : "",
      evaluated ? fmt::format(", validation {}{}", metrics_text(row.evaluation->metrics, best_by),
                              best ? ", the best so far" : "")
                : "",
      format_count(row.speed.tokens_per_second()), format_duration(row.speed.seconds), shares_text(totals));
}

std::vector<EpochRow> thinned(const std::vector<EpochRow>& rows, size_t most) {
  if (rows.size() <= most) return rows;
  std::vector<EpochRow> some;
  for (size_t i = 1; i <= most; ++i) some.push_back(rows[i * rows.size() / most - 1]);
  return some;
}

std::string epoch_table(const std::vector<EpochRow>& rows, const std::string& best_by) {
  const auto any = [&](const auto& test) { return std::any_of(rows.begin(), rows.end(), test); };
  const bool skipped = any([](const EpochRow& row) { return row.skipped_updates > 0; });
  // Evaluations by steps need not fall on the end of an epoch.
  const bool elsewhere = any([](const EpochRow& row) { return row.evaluation && row.evaluation->step != row.step; });
  std::vector<Metric> metrics;  // a column each
  for (const EpochRow& row : rows) {
    if (row.evaluation && metrics.empty()) metrics = row.evaluation->metrics.shown(best_by);
  }
  const bool perplexities = any([](const EpochRow& row) { return std::isfinite(row.training_perplexity); });
  std::vector<Table::Column> columns({{"epoch", Align::right}, {"step", Align::right}, {"train loss", Align::right}});
  if (perplexities) columns.emplace_back("perplexity", Align::right);
  columns.emplace_back("accuracy", Align::right);
  for (const Metric& metric : metrics) columns.emplace_back("val " + metric.title(), Align::right);
  if (elsewhere) columns.emplace_back("of step", Align::right);
  columns.emplace_back("tokens/s", Align::right);
  columns.emplace_back("time", Align::right);
  if (skipped) columns.emplace_back("skipped", Align::right);
  Table table(std::move(columns));
  const auto figure = [](double value, const std::string& text) { return std::isfinite(value) ? text : "-"; };
  bool partly = false;
  for (const EpochRow& row : rows) {
    const char* mark = row.since_step > 0 ? "+" : "";
    partly = partly || row.since_step > 0;
    std::vector<std::string> cells({fmt::format("{}", row.epoch), fmt::format("{}", row.step),
                                    figure(row.training_loss, fmt::format("{:.4f}{}", row.training_loss, mark))});
    if (perplexities)
      cells.push_back(
          figure(row.training_perplexity, standard_metric("perplexity", row.training_perplexity).text() + mark));
    cells.push_back(figure(row.training_accuracy, fmt::format("{:.2f} %{}", 100 * row.training_accuracy, mark)));
    for (const Metric& metric : metrics) {
      const Metric* of_row = row.evaluation ? row.evaluation->metrics.find(metric.name) : nullptr;
      cells.push_back(of_row != nullptr ? of_row->text() : "-");
    }
    if (elsewhere) cells.push_back(row.evaluation ? fmt::format("{}", row.evaluation->step) : "-");
    cells.push_back(fmt::format("{:.0f}", row.speed.tokens_per_second()));
    cells.push_back(format_duration(row.speed.seconds));
    if (skipped) cells.push_back(fmt::format("{}", row.skipped_updates));
    table.add_row(std::move(cells));
  }
  return table.text() + (partly ? "+ since the run was resumed; an earlier brisk did not keep the sums before\n" : "");
}

std::string speed_line(const Speed& speed) {
  const double steps = static_cast<double>(std::max<int64_t>(1, speed.steps));
  const bool gpu = speed.gpu_bytes > 0;
  return fmt::format(
      "{:.0f} tokens/s, {} sequences/s, {:.1f} ms/step, {:.1f} GFLOP/s: utilisation {:.1f} % of the {:.0f} GFLOP/s "
      "that {} here; {}",
      speed.tokens_per_second(), rate_text(speed.sequences_per_second()), 1e3 * speed.training_seconds / steps,
      speed.gflops(), 100 * speed.utilisation(), speed.peak_gflops,
      gpu ? "large matrix products reach" : "multiply-adds in registers reach", peak_memory_text(speed));
}

std::string peak_memory_text(const Speed& speed) {
  const bool on_gpu = speed.gpu_bytes > 0;
  const auto text = [](int64_t bytes) { return format_bytes(static_cast<double>(bytes)); };
  const int64_t peak = on_gpu ? speed.gpu_bytes : speed.peak_bytes;
  const int64_t mapped = on_gpu || speed.own_bytes <= 0 ? 0 : std::max<int64_t>(0, peak - speed.own_bytes);
  std::vector<std::string> parts;
  if (speed.planned_bytes > 0) parts.push_back(text(speed.planned_bytes) + " planned");
  if (mapped > 0) parts.push_back(text(mapped) + " are mapped files");
  return fmt::format("peak memory{} {}{}", on_gpu ? " on the GPU" : "", text(peak),
                     parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, "; ")));
}

}  // namespace brisk
