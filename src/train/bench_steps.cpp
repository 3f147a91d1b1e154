#include "train/bench_steps.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "ops/peak.h"
#include "train/metrics_log.h"

namespace brisk {

MeasuredSteps measure_steps(Engine& engine, Loader& loader, const MeasureOptions& options) {
  const int log_file = ::memfd_create("brisk-bench", MFD_CLOEXEC);  // leaves nothing behind, however this ends
  MetricsLog log(fmt::format("/proc/self/fd/{}", log_file));
  Ledger ledger;
  PeakMeter peak(engine.options().compute_type == DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32);
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
  const Arithmetic arithmetic = engine.options().compute_type == DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32;
  measured.peak_gflops = device.is_cuda() ? card_product_gflops(device, arithmetic) : peak.gflops();
  return measured;
}

}  // namespace brisk
