#include "train/micro_batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "base/terminal.h"

namespace brisk {

namespace {

constexpr double kBudgetSeconds = 5;
constexpr double kSecondsEach = 0.5;
constexpr int kTrials = 3;
constexpr int kRunsBeforeAGraph = 3;
// A larger one that is faster by less is not worth its memory.
constexpr double kWorthwhile = 1.02;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Tokens a second of forward and backward; the optimizer's pass costs the same whatever the micro-batch.
double time_size(const EngineOptions& options, const std::shared_ptr<const Sequences>& sequences,
                 LoaderOptions loader_options) {
  Engine engine(options);
  engine.initialise(options.seed);
  loader_options.micro_batch_tokens = options.capacity.rows;
  loader_options.workers = 0;
  loader_options.start = {};
  Loader loader(sequences, loader_options);
  const StepBatch whole = loader.next();
  // One micro-batch touches the memory; the trials take as many as a step has, or as time allows.
  StepBatch batch = whole;
  batch.micro_batches.resize(1);
  const auto run = [&] {
    Ledger ledger;
    const StepResult result = engine.train_step(batch, 1, 0.0, ledger);
    const Ledger::Totals totals = ledger.totals();
    const double seconds = totals.seconds() - totals.seconds(Phase::optimizer) - totals.seconds(Phase::clipping);
    return static_cast<double>(result.tokens) / seconds;
  };
  // On a card the first runs of a shape choose its products' algorithms, measure its phases and record its graph.
  const bool on_card = options.device != nullptr && options.device->is_cuda();
  for (int i = 0; on_card && i < kRunsBeforeAGraph; ++i) run();
  const auto start = std::chrono::steady_clock::now();
  double best = run();
  const double one = seconds_since(start);
  if (one > kSecondsEach) return best;
  const auto affordable = static_cast<size_t>(kSecondsEach / kTrials / one);
  batch.micro_batches = whole.micro_batches;
  batch.micro_batches.resize(std::clamp<size_t>(affordable, 1, whole.micro_batches.size()));
  best = 0;  // the best of several: a busy moment does not decide
  for (int trial = 0; trial < kTrials; ++trial) best = std::max(best, run());
  return best;
}

}  // namespace

std::vector<int64_t> micro_batch_candidates(int64_t longest, int64_t sequences, int64_t usual) {
  std::vector<int64_t> sizes;
  for (const int64_t rows : {usual, usual / 2, 2 * usual, usual / 4, 4 * usual, usual / 8}) {
    const int64_t size = std::max(longest, std::min(rows, sequences * longest));
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  }
  return sizes;
}

MicroBatchChoice measure_micro_batch(const EngineOptions& options, const std::shared_ptr<const Sequences>& sequences,
                                     const LoaderOptions& loader_options,
                                     const std::function<bool(const EngineOptions&)>& fits) {
  struct Measured {
    int64_t rows;
    double speed;
  };
  std::vector<Measured> measured;
  std::vector<std::string> unmeasured;
  const auto start = std::chrono::steady_clock::now();
  for (const int64_t rows : micro_batch_candidates(options.capacity.longest, loader_options.sequences_per_step,
                                                   usual_micro_batch_tokens(options.device))) {
    EngineOptions sized = options;
    sized.capacity = options.picking.capacity(rows, options.capacity.longest);
    if (!fits(sized)) {
      unmeasured.push_back(fmt::format("{} does not fit", rows));
    } else if (measured.size() >= 3 && seconds_since(start) > kBudgetSeconds) {
      unmeasured.push_back(fmt::format("{} not tried", rows));
    } else {
      measured.push_back({rows, time_size(sized, sequences, loader_options)});
    }
  }
  if (measured.empty()) return {options.capacity.rows, "as small as it gets: nothing else fits"};
  std::sort(measured.begin(), measured.end(), [](const Measured& a, const Measured& b) { return a.rows < b.rows; });
  Measured best = measured.front();
  std::vector<std::string> parts;
  for (const Measured& candidate : measured) {
    parts.push_back(fmt::format("{} {}", candidate.rows, format_count(candidate.speed)));
    if (candidate.speed > kWorthwhile * best.speed) best = candidate;
  }
  parts.insert(parts.end(), unmeasured.begin(), unmeasured.end());
  return {best.rows,
          fmt::format("{} tokens, the fastest measured ({} tokens/s); it changes speed and memory, not the maths",
                      best.rows, fmt::join(parts, ", "))};
}

}  // namespace brisk
