#include "train/bench_steps.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/isa.h"
#include "base/machine.h"
#include "ops/peak.h"
#include "train/metrics_log.h"

namespace brisk {

MeasuredSteps measure_steps(Engine& engine, Loader& loader, const MeasureOptions& options) {
  const int log_file = ::memfd_create("brisk-bench", MFD_CLOEXEC);  // leaves nothing behind, however this ends
  MetricsLog log(fmt::format("/proc/self/fd/{}", log_file));
  Ledger ledger;
  const Arithmetic arithmetic = arithmetic_of(engine.options().compute_type, engine.options().products);
  PeakMeter peak(arithmetic);
  std::vector<double> seconds;
  MeasuredSteps measured;
  Ledger::Totals start, beside;  // `beside`: spent on the peak, not on steps
  constexpr int64_t kWarmUp = 2;
  using Clock = std::chrono::steady_clock;
  auto measured_from = Clock::now();
  for (int64_t step = 1;; ++step) {
    if (step == kWarmUp + 1) {
      start = ledger.totals();
      measured_from = Clock::now();
    }
    if (step > kWarmUp) {
      const Ledger::Totals before_sample = ledger.totals();
      if (!engine.parameters().device().is_cuda()) peak.sample();  // the CPU's means nothing for a card
      beside += ledger.totals() - before_sample;
    }
    const auto before = Clock::now();
    StepBatch data;
    {
      Ledger::Scope scope(ledger, Phase::data_wait);
      data = loader.next();
    }
    const StepResult result = engine.train_step(data, step, options.rate, ledger);
    {
      Ledger::Scope scope(ledger, Phase::logging);
      log.append(StepMetrics{.step = step, .tokens = measured.tokens, .loss = result.loss()});
    }
    if (step <= kWarmUp) continue;
    measured.tokens += result.tokens;
    measured.sequences += data.sequences;
    seconds.push_back(std::chrono::duration<double>(Clock::now() - before).count());
    const double elapsed = std::chrono::duration<double>(Clock::now() - measured_from).count();
    if (elapsed >= options.seconds && step >= kWarmUp + options.least_steps) break;
  }
  ::close(log_file);

  measured.ledger = ledger.totals() - start - beside;
  measured.steps = std::ssize(seconds);
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
  measured.median_seconds = seconds[seconds.size() / 2];
  Device& device = engine.parameters().device();
  measured.peak_gflops = device.is_cuda() ? card_product_gflops(device, arithmetic) : peak.gflops();
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
  figures.peak_memory_bytes = device.is_cuda() ? device.used_bytes() : peak_memory_bytes();
  figures.isa = device.is_cuda() ? "cuda" : std::string(isa_name(active_isa()));
  figures.reason = precision.reason;
  figures.ledger = measured.ledger;
  return figures;
}

int64_t micro_batch_rows(int64_t asked, const Device* device, int64_t sequences, int64_t longest) {
  return std::max(longest, std::min(asked > 0 ? asked : usual_micro_batch_tokens(device), sequences * longest));
}

}  // namespace brisk
