#include "bench/bench_steps.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/threads.h"
#include "comm/communicator.h"
#include "ops/peak/peak.h"
#include "train/record/metrics_log.h"
#include "train/run/plan/rank_gpu.h"

namespace brisk {

namespace {

using BenchClock = std::chrono::steady_clock;

constexpr int64_t kWarmUp = 2;
constexpr double kLongestWarmUp = 20;  // seconds

double seconds_between(BenchClock::time_point begin, BenchClock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

ProcessGroup& group_of(ProcessGroup* processes) { return processes != nullptr ? *processes : single_process(); }

double compute_seconds(const Ledger::Totals& totals) {
  double seconds = 0;
  for (int phase = static_cast<int>(Phase::forward_embedding); phase <= static_cast<int>(Phase::optimizer); ++phase)
    seconds += totals.seconds(static_cast<Phase>(phase));
  return seconds - totals.seconds(Phase::communication);
}

int64_t real_rows_of(const StepBatch& batch) {
  int64_t rows = 0;
  for (const MicroBatch& micro_batch : batch.micro_batches) rows += micro_batch.real_rows();
  return rows;
}

// What each process did, in all of them.
std::vector<RankFigures> gather_ranks(ProcessGroup& processes, const MeasuredSteps& measured, const Device& device,
                                      int64_t own_tokens) {
  Communicator& ranks = *processes.communicator();
  const double seconds = measured.ledger.seconds();
  const std::vector<double> speeds = ranks.gather(seconds > 0 ? static_cast<double>(own_tokens) / seconds : 0),
                            compute = ranks.gather(compute_seconds(measured.ledger)),
                            communication = ranks.gather(measured.ledger.seconds(Phase::communication)),
                            walls = ranks.gather(seconds),
                            peaks = ranks.gather(
                                static_cast<double>(device.is_cuda() ? measured.memory.peak() : peak_memory_bytes()));
  std::vector<RankFigures> figures;
  for (size_t rank = 0; rank < speeds.size(); ++rank) {
    figures.push_back({.tokens_per_second = speeds[rank],
                       .compute_seconds = compute[rank],
                       .communication_seconds = communication[rank],
                       .seconds = walls[rank],
                       .peak_memory_bytes = static_cast<int64_t>(peaks[rank])});
  }
  return figures;
}

}  // namespace

void set_bench_threads(int64_t threads, ProcessGroup* processes) {
  if (threads > 0 || group_of(processes).size() == 1)
    Runtime::current().set_threads(thread_count_for(threads, "--threads"));
}

DeviceChoice choose_bench_device(const std::string& device, ProcessGroup* processes) {
  ProcessGroup& group = group_of(processes);
  if (group.size() == 1) return choose_device(device, "--device");
  const DeviceChoice place = choose_device(device_of_rank(device, cuda_gpus(), group), "--device");
  if (place.device->is_cuda()) connect_gpus(*place.device, group);
  return place;
}

PrecisionChoice agreed_precision(PrecisionChoice own, ProcessGroup* processes) {
  own.compute_type = group_of(processes).broadcast(own.compute_type);
  own.products = group_of(processes).broadcast(own.products);
  return own;
}

StepShare share_of_step(ProcessGroup* processes) {
  ProcessGroup& group = group_of(processes);
  return {.parts = group.size(), .first = group.rank(), .count = 1};
}

int64_t sequences_of_share(int64_t sequences, ProcessGroup* processes) {
  const int64_t ranks = group_of(processes).size();
  return (sequences + ranks - 1) / ranks;
}

MeasuredSteps measure_steps(Engine& engine, Loader& loader, const MeasureOptions& options) {
  const int log_file = ::memfd_create("brisk-bench", MFD_CLOEXEC);  // leaves nothing behind, however this ends
  MetricsLog log(fmt::format("/proc/self/fd/{}", log_file));
  Ledger ledger;
  const Arithmetic arithmetic = arithmetic_of(engine.options().compute_type, engine.options().products);
  ProcessGroup& processes = engine.options().process_group();
  const CommunicationAccounting accounting(processes, ledger);
  PeakMeter peak(arithmetic);
  peak.count_processes(processes.size());
  int64_t own_tokens = 0;
  std::vector<double> seconds;
  MeasuredSteps measured;
  Ledger::Totals start, excluded;  // `excluded`: spent on the peak or on what was new, not on steps
  auto warming_from = BenchClock::now(), measured_from = warming_from;
  double left_out = 0;             // seconds
  std::optional<StepBatch> ahead;  // as in training: a GPU has it before it is done with the last
  Device& device = engine.parameters().device();
  const std::unique_ptr<GpuWatch> gpu = watch_gpu(device);
  bool is_warm = false;
  for (int64_t step = 1;; ++step) {
    const bool is_settled = engine.settled_passes() >= options.least_steps ||
                            seconds_between(warming_from, BenchClock::now()) >= kLongestWarmUp;
    if (!is_warm && step > kWarmUp && processes.broadcast(is_settled)) {
      is_warm = true;
      measured.warm_up_steps = step - 1;
      start = ledger.totals();
      if (gpu) gpu->begin();
      measured_from = BenchClock::now();
    }
    if (is_warm) {
      const Ledger::Totals before_sample = ledger.totals();
      if (!engine.parameters().device().is_cuda()) peak.sample();  // the CPU's means nothing for a GPU
      processes.wait_for_all();                                    // nobody's step has another's sample in it
      excluded += ledger.totals() - before_sample;
    }
    const auto before = BenchClock::now();
    const Ledger::Totals before_step = ledger.totals();
    const auto next = [&] {
      Ledger::Scope scope(ledger, Phase::data_wait);
      return loader.next();
    };
    const StepBatch data = ahead ? *std::exchange(ahead, std::nullopt) : next();
    const StepResult result =
        engine.train_step(data, step, options.rate, ledger, {}, [&] { return &ahead.emplace(next()); });
    {
      Ledger::Scope scope(ledger, Phase::logging);
      log.append(
          StepMetrics{.step = step, .tokens = measured.tokens, .metrics = {standard_metric("loss", result.loss())}});
    }
    const auto after = BenchClock::now();
    if (step == 1) {
      measured.first_step_seconds = seconds_since_process_start();
      warming_from = after;
    }
    if (!is_warm) continue;
    const double elapsed = seconds_between(before, after);
    // The pass of this step, or that of the next, which began meanwhile, met a size that was new. Where everything is
    // new all the time, that is the speed.
    if (processes.broadcast(engine.settled_passes() < 2 && left_out < options.seconds)) {
      left_out += elapsed;
      excluded += ledger.totals() - before_step;
      continue;
    }
    measured.tokens += result.tokens;
    measured.sequences += result.sequences;
    own_tokens += real_rows_of(data);
    seconds.push_back(elapsed);
    const double counted = seconds_between(measured_from, after) - left_out;
    if (processes.broadcast(counted >= options.seconds && std::ssize(seconds) >= options.least_steps)) break;
  }
  ::close(log_file);

  measured.ledger = ledger.totals() - start - excluded;
  measured.steps = std::ssize(seconds);
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
  measured.median_seconds = seconds[seconds.size() / 2];
  measured.memory = device.memory();
  if (gpu) measured.gpu = gpu->summary();
  measured.world_size = processes.size();
  if (Communicator* ranks = processes.communicator()) {
    measured.transport = ranks->transport();
    measured.ranks = gather_ranks(processes, measured, device, own_tokens);
  }
  measured.peak_gflops = device.is_cuda() ? gpu_product_gflops(device, arithmetic) * processes.size() : peak.gflops();
  return measured;
}

void BenchFigures::set_speed(double tokens_a_second, double flop_per_token) {
  tokens_per_second = tokens_a_second;
  gflops = tokens_a_second * flop_per_token * 1e-9;
  utilisation = peak_gflops > 0 ? gflops / peak_gflops : 0;
}

BenchFigures figures_of(const MeasuredSteps& measured, Engine& engine, const PrecisionChoice& precision) {
  BenchFigures figures;
  figures.peak_gflops = measured.peak_gflops;
  figures.step_ms = 1e3 * measured.median_seconds;
  figures.steps = measured.steps;
  figures.parameters = engine.parameters().count();
  figures.precision = precision_name(precision.compute_type, precision.products);
  const Device& device = engine.parameters().device();
  figures.peak_memory_bytes = device.is_cuda() ? measured.memory.peak() : peak_memory_bytes();
  figures.peak_allocated_bytes = measured.memory.peak_allocated;
  figures.first_step_seconds = measured.first_step_seconds;
  figures.warm_up_steps = measured.warm_up_steps;
  figures.gpu = measured.gpu;
  figures.isa = arithmetic_unit(device);
  figures.reason = precision.reason;
  figures.ledger = measured.ledger;
  figures.world_size = measured.world_size;
  figures.rank = engine.options().process_group().rank();
  figures.transport = measured.transport;
  figures.ranks = measured.ranks;
  return figures;
}

}  // namespace brisk
