#include "cli/bench_output.h"

#include <fmt/format.h>

#include "base/terminal/terminal.h"
#include "train/record/run_text.h"

namespace brisk {

namespace {

// Of several processes: what each did.
std::string rank_table(const BenchFigures& figures) {
  Table table({fmt::format("{} ranks, {}", figures.world_size, figures.transport),
               {"tokens/s", Align::right},
               {"computing", Align::right},
               {"communicating, exposed", Align::right},
               {"peak memory", Align::right}});
  for (size_t rank = 0; rank < figures.ranks.size(); ++rank) {
    const RankFigures& own = figures.ranks[rank];
    const double all = own.seconds > 0 ? 100 / own.seconds : 0;
    table.add_row({fmt::format("rank {}", rank), fmt::format("{:.0f}", own.tokens_per_second),
                   fmt::format("{:.1f} %", all * own.compute_seconds),
                   fmt::format("{:.1f} %", all * own.communication_seconds),
                   format_bytes(static_cast<double>(own.peak_memory_bytes))});
  }
  return table.text();
}

}  // namespace

void print_json(nlohmann::ordered_json json, const BenchFigures& figures) {
  json["tokens_per_second"] = figures.tokens_per_second;
  json["gflops"] = figures.gflops;
  json["peak_gflops"] = figures.peak_gflops;
  json["utilisation"] = figures.utilisation;
  json["peak_memory_bytes"] = figures.peak_memory_bytes;
  if (figures.peak_allocated_bytes > 0) json["peak_allocated_bytes"] = figures.peak_allocated_bytes;
  json["first_step_seconds"] = figures.first_step_seconds;
  json["warm_up_steps"] = figures.warm_up_steps;
  if (figures.gpu) {
    json["gpu"] = {{"mean_busy_share", figures.gpu->mean_busy_share},
                   {"mean_watts", figures.gpu->mean_watts},
                   {"max_celsius", figures.gpu->max_celsius},
                   {"mean_sm_mhz", figures.gpu->mean_sm_mhz},
                   {"joules", figures.gpu->joules}};
  }
  json["precision"] = figures.precision;
  json["isa"] = figures.isa;
  json["device"] = figures.device;
  json["step_ms"] = figures.step_ms;
  json["world_size"] = figures.world_size;
  json["rank"] = figures.rank;
  if (!figures.transport.empty()) json["transport"] = figures.transport;
  for (const RankFigures& rank : figures.ranks) {
    json["ranks"].push_back({{"tokens_per_second", rank.tokens_per_second},
                             {"compute_seconds", rank.compute_seconds},
                             {"exposed_communication_seconds", rank.communication_seconds},
                             {"seconds", rank.seconds},
                             {"peak_memory_bytes", rank.peak_memory_bytes}});
  }
  json["steps"] = figures.steps;
  json["parameters"] = figures.parameters;
  for (const auto& [phase, seconds] : phases_of(figures.ledger)) json["ledger"][phase] = seconds;
  fmt::print("{}\n", json.dump());
}

void print_text(const std::string& name, const std::string& rates, const BenchFigures& figures,
                const std::string& memory) {
  say("precision: {}", figures.reason);
  fmt::print("{}", ledger_table(figures.ledger, {.steps = figures.steps}));
  fmt::print(
      "{}: {}{:.0f} tokens/s, {:.1f} ms per step (median of {}), {:.1f} GFLOP/s, {:.1f} % of {:.0f} GFLOP/s, peak memory "
      "{}{}\n",
      name, rates, figures.tokens_per_second, figures.step_ms, figures.steps, figures.gflops, 100 * figures.utilisation,
      figures.peak_gflops, format_bytes(static_cast<double>(figures.peak_memory_bytes)), memory);
  if (!figures.ranks.empty()) fmt::print("{}", rank_table(figures));
  if (figures.peak_allocated_bytes > 0) {
    fmt::print(
        "GPU: {} allocated by brisk, the rest by CUDA itself; first step {} after the start, {} warm-up steps{}\n",
        format_bytes(static_cast<double>(figures.peak_allocated_bytes)), format_duration(figures.first_step_seconds),
        figures.warm_up_steps, figures.gpu ? "; " + format_gpu(*figures.gpu) : "");
  }
}

}  // namespace brisk
