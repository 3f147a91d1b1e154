#include "train/record/run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/machine/machine.h"
#include "base/terminal/terminal.h"

namespace brisk {

namespace {

// Of rows or sequences, of which there may be less than one a second.
std::string rate_text(double per_second) { return fmt::format("{:.{}f}", per_second, per_second < 100 ? 1 : 0); }

}  // namespace

std::string model_table(const std::vector<ComponentCost>& costs) {
  Table table({"component",
               {"parameters", Align::right},
               {"bytes (fp32)", Align::right},
               {"MFLOP/token", Align::right},
               {"share", Align::right}});
  double total_flop = 0;
  for (const ComponentCost& cost : costs) total_flop += cost.flop_per_token;
  int64_t parameters = 0;
  for (const ComponentCost& cost : costs) {
    parameters += cost.parameters;
    table.add_row({cost.component, format_count(static_cast<double>(cost.parameters)),
                   format_bytes(4.0 * static_cast<double>(cost.parameters)),
                   fmt::format("{:.2f}", cost.flop_per_token * 1e-6),
                   fmt::format("{:.1f} %", 100 * cost.flop_per_token / total_flop)});
  }
  table.add_separator();
  table.add_row({"total", format_count(static_cast<double>(parameters)),
                 format_bytes(4.0 * static_cast<double>(parameters)), fmt::format("{:.2f}", total_flop * 1e-6),
                 "100.0 %"});
  return table.text();
}

std::string memory_table(const MemoryPlan& plan) {
  Table table({"memory", {"bytes", Align::right}});
  const auto add = [&](const char* what, int64_t bytes) {
    if (bytes > 0) table.add_row({what, format_bytes(static_cast<double>(bytes))});
  };
  add("weights (fp32 masters)", plan.state.masters);
  add("weights (copies that products read)", plan.state.copies);
  add("gradients", plan.state.gradients);
  add("optimizer (moments)", plan.state.moments);
  add("optimizer (workspace)", plan.optimizer_bytes);
  // Where logits are made, activations that are needed no more lie at other times: the arena is planned as one.
  add("activations", plan.activation_bytes - plan.batch_bytes - plan.loss_bytes);
  add("loss (logits of a chunk of rows)", plan.loss_bytes);
  add("batch", plan.batch_bytes);
  add("evaluation", plan.evaluation_bytes);
  add("workspaces of products and other ops", plan.workspace_bytes);
  table.add_separator();
  table.add_row({"total", format_bytes(static_cast<double>(plan.total()))});
  add("besides, where there is room: cuDNN's attention", plan.library_bytes);
  return table.text();
}

double training_seconds(const Ledger::Totals& totals) {
  return totals.seconds() - totals.seconds(Phase::start_up) - totals.seconds(Phase::evaluation) -
         totals.seconds(Phase::checkpoint);
}

std::string ledger_table(const Ledger::Totals& totals, const Speed& speed) {
  PhaseSeconds ledger;
  for (int i = 0; i < kPhases; ++i) {
    const Phase phase = static_cast<Phase>(i);
    ledger.emplace_back(phase_name(phase), totals.seconds(phase));
  }
  return ledger_table(ledger, speed, totals.sampled);
}

std::string ledger_table(const PhaseSeconds& ledger, const Speed& speed, bool sampled) {
  Table table({"phase", {"seconds", Align::right}, {"share", Align::right}, {"ms/step", Align::right}});
  double all = 0;
  for (const auto& [phase, seconds] : ledger) all += seconds;
  const double steps = static_cast<double>(std::max<int64_t>(1, speed.steps));
  for (const auto& [phase, seconds] : ledger) {
    if (seconds <= 0) continue;
    table.add_row({phase, fmt::format("{:.2f}", seconds), fmt::format("{:.1f} %", 100 * seconds / all),
                   fmt::format("{:.2f}", 1e3 * seconds / steps)});
  }
  table.add_separator();
  table.add_row({"wall time", fmt::format("{:.2f}", all), "100.0 %", fmt::format("{:.2f}", 1e3 * all / steps)});
  if (!sampled) return table.text();
  return table.text() + "(on the GPU, phases of a step are shares of steps that were measured op by op)\n";
}

std::string epoch_line(const EpochRow& row, int64_t epochs, const std::string& best_by) {
  std::string line = fmt::format("epoch {}/{}: training loss {:.4f}, accuracy {:.2f} %{}", row.epoch, epochs,
                                 row.training_loss, 100 * row.training_accuracy,
                                 row.since_step > 0 ? fmt::format(" (since step {})", row.since_step) : "");
  if (row.evaluation) {
    line += fmt::format(", validation {}{}", metrics_text(row.evaluation->metrics, best_by),
                        row.evaluation->step == row.step ? "" : fmt::format(" (of step {})", row.evaluation->step));
  }
  return line;
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
  std::vector<Table::Column> columns(
      {{"epoch", Align::right}, {"step", Align::right}, {"train loss", Align::right}, {"accuracy", Align::right}});
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
    std::vector<std::string> cells(
        {fmt::format("{}", row.epoch), fmt::format("{}", row.step),
         figure(row.training_loss, fmt::format("{:.4f}{}", row.training_loss, mark)),
         figure(row.training_accuracy, fmt::format("{:.2f} %{}", 100 * row.training_accuracy, mark))});
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
      "{:.0f} tokens/s, {} sequences/s, {:.1f} ms a step, {:.1f} GFLOP/s: utilisation {:.1f} % of the {:.0f} GFLOP/s "
      "that {} here; {} {}",
      speed.tokens_per_second(), rate_text(speed.sequences_per_second()), 1e3 * speed.training_seconds / steps,
      speed.gflops(), 100 * speed.utilisation(), speed.peak_gflops,
      gpu ? "large matrix products reach" : "multiply-adds in registers reach",
      gpu ? "peak memory on the GPU" : "peak memory",
      format_bytes(static_cast<double>(gpu ? speed.gpu_bytes : peak_memory_bytes())));
}

}  // namespace brisk
