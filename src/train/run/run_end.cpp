#include "train/run/run_end.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/machine/process.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "checkpoint/checkpoint.h"
#include "comm/communicator.h"
#include "infer/device_choice.h"
#include "report/read/run_record.h"
#include "train/record/metrics_log.h"
#include "train/run/compare_baseline.h"
#include "train/run/rank_watch.h"

namespace brisk {

namespace {

std::vector<std::pair<std::string, double>> all_phases(const PhaseSeconds& ledger) {
  std::vector<std::pair<std::string, double>> all;
  for (int i = 0; i < kPhases; ++i) {
    const std::string name(phase_name(static_cast<Phase>(i)));
    const auto found = std::ranges::find(ledger, name, &PhaseSeconds::value_type::first);
    all.emplace_back(name, found == ledger.end() ? 0.0 : found->second);
  }
  return all;
}

// This process alone: where the run's ledger could not be written.
RunTotals totals_of(const Speed& speed, const Ledger::Totals& totals) {
  return {.ledger = phases_of(totals),
          .processes = 1,
          .steps = speed.steps,
          .tokens = speed.tokens,
          .sequences = speed.sequences,
          .rows = speed.rows,
          .seconds = totals.seconds(),
          .training_seconds = speed.training_seconds,
          .gigaflop = speed.gflops() * speed.training_seconds,
          .peak_gigaflop = speed.peak_gflops * speed.training_seconds};
}

// The speed of the whole run; `process`: of its last process. What was planned and what is mapped is known of that one.
Speed speed_of(const RunTotals& run, const Speed& process, int64_t peak_bytes) {
  const bool alone = run.processes <= 1;
  return {.seconds = run.seconds,
          .tokens = run.tokens,
          .steps = run.steps,
          .sequences = run.sequences,
          .flop_per_token = process.flop_per_token,
          .peak_gflops = run.tokens > 0 ? run.peak_gflops() : process.peak_gflops,
          .training_seconds = run.training_seconds,
          .gpu_bytes = process.gpu_bytes > 0 ? peak_bytes : 0,
          .peak_bytes = peak_bytes,
          .own_bytes = alone ? process.own_bytes : 0,
          .planned_bytes = alone ? process.planned_bytes : 0};
}

std::vector<EpochRow> epoch_rows(const RunRecord& run, const Speed& process, bool has_perplexity) {
  std::vector<EpochRow> rows;
  for (const EpochTime& time : run.epochs) {
    if (time.steps == 0) continue;
    EpochRow row{.epoch = time.epoch,
                 .step = time.step,
                 .training_loss = time.training_loss,
                 .training_accuracy = time.training_accuracy,
                 .since_step = time.since_step};
    if (has_perplexity) row.training_perplexity = std::exp(time.training_loss);
    row.skipped_updates = time.skipped_updates;
    const int64_t before = rows.empty() ? 0 : rows.back().step;
    for (const EvaluationPoint& point : run.evaluations) {
      const auto step = static_cast<int64_t>(point.step);
      if (step > before && step <= time.step) row.evaluation = EvaluationMetrics{step, time.epoch, point.metrics, 0};
    }
    row.speed = {.seconds = epoch_seconds(time.ledger),
                 .tokens = time.tokens,
                 .steps = time.steps,
                 .sequences = time.sequences,
                 .flop_per_token = process.flop_per_token,
                 .peak_gflops = process.peak_gflops,
                 .training_seconds = training_seconds(time.ledger)};
    rows.push_back(std::move(row));
  }
  return rows;
}

// What the GPU of each rank told; none of one whose driver tells nothing, or that has none.
std::vector<std::optional<GpuSummary>> gathered(const std::optional<GpuSummary>& own, Communicator& ranks) {
  static_assert(std::is_trivially_copyable_v<GpuSummary>);
  std::string bytes;
  if (own) bytes.assign(reinterpret_cast<const char*>(&*own), sizeof(GpuSummary));
  std::vector<std::optional<GpuSummary>> all;
  for (const std::string& text : ranks.gather(bytes)) {
    all.emplace_back();
    if (text.size() != sizeof(GpuSummary)) continue;
    std::memcpy(&all.back().emplace(), text.data(), sizeof(GpuSummary));
  }
  return all;
}

// What all processes of the run add up to.
struct WholeRun {
  Ledger::Totals process;  // the last one
  RunRecord record;
  RunTotals totals;
  RunSummary summary;
};

WholeRun whole_run(const RunPlan& plan, const RunState& run, const RunResources& resources, const RunWatch& watch,
                   const RunEnd& end) {
  const auto known = [](double value) { return std::isfinite(value) ? value : 0.0; };
  WholeRun whole{.process = run.ledger.totals(), .record = {}, .totals = {}, .summary = run.summary};
  // The run's files have all its processes; where they could not be written, there is this one.
  const bool written = watch.problem().empty() && plan.writes();
  if (written) whole.record = read_run_figures(plan.directory.path());
  whole.totals = written ? whole.record.totals : totals_of(end.speed, whole.process);
  const RunTotals& totals = whole.totals;
  RunSummary& summary = whole.summary;
  summary.parameters = plan.memory.parameters;
  summary.model_bytes = plan.memory.parameters * size_of(DType::f32);
  summary.ledger = all_phases(totals.ledger);
  summary.wall_seconds = totals.seconds;
  summary.run_tokens_per_second = known(totals.tokens_per_second());
  summary.sequences_per_second = known(totals.sequences_per_second());
  if (plan.loader_options.padding.any() && totals.rows > 0)
    summary.padding = 1 - static_cast<double>(totals.tokens) / static_cast<double>(totals.rows);
  summary.gflops = known(totals.gflops());
  summary.peak_gflops = totals.tokens > 0 ? known(totals.peak_gflops()) : resources.peak->gflops();
  summary.utilisation = known(totals.utilisation());
  summary.processes = totals.processes;
  summary.process_ledger = all_phases(phases_of(whole.process));
  summary.process_wall_seconds = whole.process.seconds();
  summary.process_tokens_per_second = end.speed.tokens_per_second();
  summary.process_utilisation = end.speed.utilisation();
  summary.ended = end.ended;
  summary.warnings = end.warnings;
  const Device& device = resources.engine->parameters().device();
  if (std::isfinite(whole.record.peak_memory_bytes))
    summary.peak_memory_bytes = static_cast<int64_t>(whole.record.peak_memory_bytes);
  summary.peak_memory_bytes =
      std::max(summary.peak_memory_bytes, device.is_cuda() ? device.memory().peak() : peak_memory_bytes());
  summary.peak_allocated_bytes = device.memory().peak_allocated;
  if (!device.is_cuda()) summary.peak_own_bytes = end.speed.own_bytes;
  summary.planned_memory_bytes = end.speed.planned_bytes;
  if (resources.gpu) {
    summary.gpu = resources.gpu->summary();
    const double joules = summary.gpu->joules;
    if (joules > 0) summary.tokens_per_joule = static_cast<double>(end.speed.tokens) / joules;
  }
  summary.precision = precision_name(plan.tuned.compute_type, plan.tuned.products);
  summary.isa = arithmetic_unit(device);
  summary.device = device.name();
  summary.threads = thread_pool().size();
  summary.world_size = plan.processes().size();
  if (Communicator* ranks = plan.processes().communicator()) {
    const CommunicationTotals own = resources.engine->communication();
    const std::vector<double> waits = ranks->gather(whole.process.seconds(Phase::communication));
    const std::vector<double> hidden = ranks->gather(own.hidden_seconds);
    const std::vector<double> work = ranks->gather(work_seconds(whole.process));
    const std::vector<double> sent = ranks->gather(static_cast<double>(own.bytes_sent));
    const int64_t peak = device.is_cuda() ? device.memory().peak() : peak_memory_bytes();
    const std::vector<double> peaks = ranks->gather(static_cast<double>(peak));
    const std::vector<std::optional<GpuSummary>> gpus = gathered(summary.gpu, *ranks);
    const std::vector<std::string> hosts = ranks->gather(host_name());
    for (size_t rank = 0; rank < waits.size(); ++rank) {
      summary.ranks.push_back({.host = hosts[rank],
                               .communication_seconds = waits[rank],
                               .hidden_communication_seconds = hidden[rank],
                               .work_seconds = work[rank],
                               .bytes_sent = static_cast<int64_t>(sent[rank]),
                               .peak_memory_bytes = static_cast<int64_t>(peaks[rank]),
                               .gpu = gpus[rank]});
    }
  }
  summary.skipped_updates = run.state.guard.skipped;
  summary.rollbacks = run.state.guard.rollbacks;
  if (const LossScale* scale = resources.engine->loss_scale()) summary.skipped_steps = scale->skipped_steps;
  summary.best_by = plan.job.training.best_by;
  summary.fingerprints = fingerprints_of(plan.data);
  return whole;
}

}  // namespace

void end_diverged(const RunPlan& plan, const RunState& run, const RunResources& resources, RunWatch& watch, RunEnd end,
                  int64_t step, const std::string& what) {
  end.ended = kDiverged;
  end.warnings = {what};
  watch.end(end.ended, step);
  RunSummary summary = whole_run(plan, run, resources, watch, end).summary;
  summary.diverged_at = step;
  try {
    if (plan.writes()) write_summary(plan.directory.summary_path(), summary);
  } catch (const UserError& error) {  // what happened is more important
    warn("{}", error.what());
  }
}

TrainOutcome end_run(const RunPlan& plan, const RunState& run, const RunResources& resources, RunWatch& watch,
                     const RunEnd& end) {
  watch.end(end.ended);
  const auto [process, record, totals, summary] = whole_run(plan, run, resources, watch, end);
  if (!end.interrupted && end.speed.steps == 0 &&
      summary_says(plan.directory.summary_path(), run.state.step, summary.ended)) {
    say("{} already ended after step {} ({}): nothing to do; to go on, make it longer (--stop 2e, --set "
        "training.max_steps=N)",
        plan.directory.path(), run.state.step, summary.ended);
    return {end.interrupted, plan.directory.path(), summary};
  }
  if (!watch.problem().empty()) warn("{}", watch.problem());
  std::string unsaved = end.save_failed ? "the last checkpoint" : "";
  try {
    if (plan.writes()) write_summary(plan.directory.summary_path(), summary);
  } catch (const UserError& error) {
    warn("{}", error.what());
    if (unsaved.empty()) unsaved = "summary.json";
  }
  constexpr size_t kEpochsShown = 10;
  const std::vector<EpochRow> rows = epoch_rows(record, end.speed, plan.task->metrics().find("perplexity") != nullptr);
  // Of a single epoch that came to its end, its line told everything.
  if (rows.size() > 1 || (!rows.empty() && end.ended != "finished"))
    say_table(epoch_table(thinned(rows, kEpochsShown), plan.job.training.best_by));
  const Speed speed = speed_of(totals, end.speed, summary.peak_memory_bytes);
  if (totals.processes > 1) {
    say("this process, from step {}: {} in {}, {}", run.state.step - end.speed.steps, plural(end.speed.steps, "step"),
        format_duration(process.seconds()), speed_line(end.speed));
  }
  if (summary.ranks.size() > 1) {
    std::string waits;
    for (size_t rank = 0; rank < summary.ranks.size(); ++rank) {
      const RunSummary::RankFigures& figures = summary.ranks[rank];
      const double steps = static_cast<double>(std::max<int64_t>(1, end.speed.steps));
      waits += fmt::format(
          "\n  rank {} on {}: {:.2f} ms a step ({:.1f} %), and {:.2f} ms hidden behind its work; {} sent; {}", rank,
          figures.host, 1e3 * figures.communication_seconds / steps,
          100 * figures.communication_seconds / std::max(1e-9, process.seconds()),
          1e3 * figures.hidden_communication_seconds / steps, format_bytes(static_cast<double>(figures.bytes_sent)),
          format_bytes(static_cast<double>(figures.peak_memory_bytes)));
    }
    say("{} ranks ({}); waiting for each other and exchanging, and peak memory:{}", summary.world_size,
        plan.processes().communicator()->transport(), waits);
    if (const auto& slow = summary.slow_rank)
      say("rank {} on {} was slow: its work took {:.2f} times as long as the others'", slow->rank, slow->host,
          slow->times);
  }
  say("whole run{}:\n{}{}", totals.processes > 1 ? fmt::format(", {} processes", totals.processes) : "",
      ledger_table(totals.ledger, speed, process.sampled), speed_line(speed));
  if (summary.checkpoints_saved > 0) {
    say("checkpoints{}: {} saved, written in {}; training waited {} for them",
        totals.processes > 1 ? " of this process" : "", summary.checkpoints_saved,
        format_duration(summary.checkpoint_write_seconds), format_duration(process.seconds(Phase::checkpoint)));
  }
  for (size_t rank = 1; rank < summary.ranks.size(); ++rank) {
    if (summary.ranks[rank].gpu) say("the GPU of rank {}: {}", rank, format_gpu(*summary.ranks[rank].gpu));
  }
  if (summary.gpu) {
    const double tokens = summary.tokens_per_joule;
    say("the GPU: {}{}", format_gpu(*summary.gpu),
        tokens > 0 ? fmt::format(", {} tokens/J", format_count(tokens)) : "");
  }
  if (summary.first_step_seconds > 0 && resources.engine->parameters().device().is_cuda()) {
    say("the first step was done {} after the start of the training", format_duration(summary.first_step_seconds));
  }
  if (run.state.guard.skipped + run.state.guard.rollbacks > 0) {
    say("divergence guard: {} skipped, {}; the learning rate is {:g} times the schedule's",
        plural(run.state.guard.skipped, "update"), plural(run.state.guard.rollbacks, "rollback"),
        run.state.guard.rate_factor);
  }
  if (const LossScale* scale = resources.engine->loss_scale()) {
    say("loss scaling: {} skipped, the scale is {:g}", plural(scale->skipped_steps, "step"), scale->scale);
  }
  if (run.time_box && !end.interrupted) {
    say("training.stop {}: ended after {}: {}, {} tokens, {:.2f} epochs{}", plan.job.training.stop,
        format_duration(run.elapsed()), plural(run.state.step, "step"),
        format_count(static_cast<double>(run.state.tokens_seen)),
        static_cast<double>(run.state.step) / static_cast<double>(plan.steps_per_epoch),
        end.expected_steps > 0 ? fmt::format(" ({} were expected)", plural(end.expected_steps, "step")) : "");
  }
  if (knows_baseline(plan.job)) {
    double start_up = 0;
    for (const auto& [phase, seconds] : totals.ledger) start_up += phase == phase_name(Phase::start_up) ? seconds : 0;
    const double epochs = static_cast<double>(totals.tokens) / std::max(1.0, plan.data.rows_per_epoch);
    const EvaluationPoint* best = record.best_evaluation();
    say_table(baseline_table(plan.job.baseline, {.tokens_per_second = speed.tokens_per_second(),
                                                 .epoch_seconds = epochs > 0 ? (totals.seconds - start_up) / epochs : 0,
                                                 .best = best != nullptr ? best->metrics : Metrics()}));
  }
  for (const std::string& warning : end.warnings) warn("{}", warning);
  if (!unsaved.empty()) {
    user_error("{}: {}, but {} could not be saved; fix that, then use --resume to continue from {}",
               plan.directory.path(), summary.ended, unsaved,
               latest_checkpoint(plan.directory.path()).value_or("the beginning"));
  }
  return {end.interrupted, plan.directory.path(), summary};
}

}  // namespace brisk
