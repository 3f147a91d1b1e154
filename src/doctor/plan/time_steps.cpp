#include "doctor/plan/time_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "doctor/ladder/statistics.h"
#include "doctor/ladder/subject.h"
#include "doctor/ladder/variants.h"
#include "doctor/plan/scaling.h"

namespace brisk {

namespace {

constexpr double kReached = 0.4;  // of the rate of large products, by a usual step

double guessed_token_seconds(const JobSize& size, const MachineRates& here) {
  const double products = std::max({1.0, here.fp32_products, here.bf16_products});
  return size.flop_per_token / (kReached * 1e9 * products);
}

double seconds_of(const Ledger::Totals& ledger, std::initializer_list<Phase> phases) {
  return std::accumulate(phases.begin(), phases.end(), 0.0,
                         [&](double sum, Phase phase) { return sum + ledger.seconds(phase); });
}

StepTimes times_of(const Subject& subject) {
  const Block all = subject.total();
  const Ledger::Totals& ledger = all.ledger;
  StepTimes times{
      .linear = seconds_of(ledger, {Phase::forward_linear, Phase::backward_linear}),
      .attention = seconds_of(ledger, {Phase::forward_attention, Phase::backward_attention}),
      .head = seconds_of(ledger, {Phase::loss}),
      .rows = seconds_of(ledger, {Phase::forward_norm, Phase::backward_norm, Phase::forward_elementwise,
                                  Phase::backward_elementwise, Phase::forward_embedding, Phase::backward_embedding}),
      .update = all.update_seconds(),
      .precision = subject.facts().precision};
  // The median of the stretches, which one that was disturbed does not touch; the ledger says how it is divided.
  const double whole = all.tokens > 0 ? all.seconds / all.tokens : 0;
  std::vector<double> each;
  for (const Block& block : subject.blocks()) each.push_back(block.tokens > 0 ? block.seconds / block.tokens : 0);
  std::sort(each.begin(), each.end());
  const double middle = median(each), tokens = std::max(1.0, all.tokens);
  const double steady = whole > 0 ? middle / whole : 1;
  times.other = all.seconds - times.linear - times.attention - times.head - times.rows -
                all.update_seconds() * static_cast<double>(all.steps);
  for (double* const part : {&times.linear, &times.attention, &times.head, &times.rows, &times.other})
    *part = std::max(0.0, *part) * steady / tokens;
  times.update *= steady;
  if (each.size() > 2 && middle > 0) times.spread = 0.5 * (each.back() - each.front()) / middle;
  times.start_up = subject.facts().start_up_seconds;
  return times;
}

void time_the_rest(Subject& subject, const JobSize& size, StepTimes& times) {
  MeasuredRun& run = subject.run();
  if (size.validation_sequences > 0) {
    constexpr double kSeconds = 0.2;
    run.evaluate(4);  // makes the evaluator
    Timed timed = run.evaluate(8);
    const double each = timed.seconds / static_cast<double>(std::max<int64_t>(1, timed.count));
    const auto count = std::max<int64_t>(8, static_cast<int64_t>(std::min(1e9, kSeconds / std::max(each, 1e-9))));
    std::vector<double> seconds;
    for (int i = 0; i < 3; ++i) {
      timed = run.evaluate(count);
      seconds.push_back(timed.seconds);
    }
    const double tokens = size.validation_tokens * static_cast<double>(timed.count) / static_cast<double>(timed.of);
    times.evaluation = median(seconds) / std::max(1.0, tokens);
  }
  constexpr int64_t kMostWritten = int64_t{256} << 20;
  constexpr double kCopiedBytesPerSecond = 4e9;  // of a larger one, which would be written for seconds
  times.save = size.disk.checkpoint <= kMostWritten ? run.save().seconds
                                                    : static_cast<double>(size.disk.checkpoint) / kCopiedBytesPerSecond;
}

}  // namespace

double guessed_step_seconds(const JobSize& size, const MachineRates& here) {
  const double bytes = here.copy_gb_per_second > 0 ? size.update_bytes / (1e9 * here.copy_gb_per_second) : 0;
  constexpr double kReachedByUpdate = 0.7;
  const double products = size.update_flop / (kReachedByUpdate * 1e9 * std::max(1.0, here.fp32_products));
  return size.tokens_per_step() * guessed_token_seconds(size, here) + bytes + products;
}

StepTimes time_steps(const Job& job, const JobSize& size, const MachineRates& here, const TimingOptions& options) {
  constexpr double kStretch = 0.25;  // seconds
  constexpr int kLeastStretches = 3;
  MeasuringLength length;
  length.micro_batch_tokens = job.training.measure_micro_batch ? size.micro_batch_tokens : 0;
  const double guessed = size.tokens_per_step() * guessed_token_seconds(size, here);
  if (guessed > options.longest_step && size.sequences_per_step > 1) {
    length.sequences_per_step =
        std::max<int64_t>(1, static_cast<int64_t>(size.sequences_per_step * options.longest_step / guessed));
  }
  Job timed = job;
  timed.training.cache_frozen = false;  // that would compute the whole text ahead
  timed.training.teacher.clear();       // and its answers to it
  Subject subject(timed, length, options.folder, false);
  try {
    subject.start();
    double seconds = 0;
    for (int i = 0; i < kLeastStretches || seconds < options.seconds; ++i) {
      seconds += subject.measure(kStretch).seconds;
      if (i + 1 >= 2 && seconds > 3 * options.seconds) break;
    }
    StepTimes times = times_of(subject);
    if (options.times_the_rest) time_the_rest(subject, size, times);
    return times;
  } catch (const RunFailed& failure) {
    if (failure.refused) user_error("{}", failure.what());
    throw;
  }
}

}  // namespace brisk
