#include "train/engine/tune_micro_batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "ops/backend.h"
#include "ops/tape/gpu_workspace.h"

namespace brisk {

namespace {

constexpr double kBudgetSeconds = 5;
constexpr double kSecondsEach = 0.5;
constexpr int kTrials = 3;
constexpr double kGpuSecondsEach = 3;
constexpr int64_t kSettledRuns = 2;
// A larger one that is faster by less is not worth its memory.
constexpr double kWorthwhile = 1.02;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool is_for_gpu(const EngineOptions& options) { return options.device != nullptr && options.device->is_cuda(); }

StepBatch first_step(const EngineOptions& options, const std::shared_ptr<const Sequences>& sequences,
                     LoaderOptions loader_options) {
  loader_options.micro_batch_rows = options.layout.row_limits(options.capacity);
  loader_options.workers = 0;
  loader_options.start = {};
  return Loader(sequences, loader_options).next();
}

// Tokens a second of forward and backward; the optimizer's pass costs the same whatever the micro-batch.
double time_size(const EngineOptions& options, const StepBatch& whole) {
  Engine engine(options);
  engine.initialise(options.seed);
  // One micro-batch touches the memory; the trials take as many as a step has, or as time allows.
  StepBatch batch = whole;
  batch.micro_batches.resize(1);
  const auto run = [&] {
    throw_if_cancelled();
    Ledger ledger;
    const StepResult result = engine.train_step(batch, 1, 0.0, ledger);
    const Ledger::Totals totals = ledger.totals();
    const double seconds = totals.seconds() - totals.seconds(Phase::optimizer) - totals.seconds(Phase::clipping);
    return static_cast<double>(result.tokens) / seconds;
  };
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

// Of a GPU: tokens a second of a step of about `rows` rows, or of a whole one where that is smaller. Every size has
// the same to do then, the update included, which a GPU does not time apart from the rest.
double time_size_on_gpu(const EngineOptions& options, StepBatch batch, int64_t rows) {
  const int64_t each = batch.micro_batches.front().sets[0].rows();  // they are about equally large
  const auto nearest = static_cast<size_t>(std::max<int64_t>(1, (rows + each / 2) / each));
  batch.micro_batches.resize(std::min(nearest, batch.micro_batches.size()));
  Engine engine(options);
  engine.initialise(options.seed);
  Ledger ledger;
  const auto run = [&] {
    throw_if_cancelled();
    const auto start = std::chrono::steady_clock::now();
    const StepResult result = engine.train_step(batch, 1, 0.0, ledger);  // waits for its end
    return static_cast<double>(result.tokens) / seconds_since(start);
  };
  run();  // chooses algorithms
  // Then it is measured op by op and recorded; what takes seconds can be judged without that.
  const auto start = std::chrono::steady_clock::now();
  double best = run();
  while (engine.settled_passes() < kSettledRuns && seconds_since(start) < kGpuSecondsEach) best = run();
  for (int trial = 1; trial < kTrials && seconds_since(start) < kGpuSecondsEach; ++trial) best = std::max(best, run());
  return best;
}

// The sizes that are timed for a job. A GPU chooses algorithms for each, which takes seconds: there it is what fits
// and its neighbours; with less than half of it a GPU would be idle, and more than a step has would be empty.
std::vector<int64_t> sizes_to_try(const EngineOptions& options, int64_t sequences, const LengthFigures& lengths) {
  const bool on_gpu = is_for_gpu(options);
  const int64_t usual = on_gpu ? options.capacity.rows : kMicroBatchTokens;
  std::vector<int64_t> sizes = micro_batch_candidates(options.capacity.longest, sequences, usual);
  if (on_gpu) {
    const int64_t most = std::max(usual, std::min(2 * usual, rows_of_nearly_all_steps(sequences, lengths)));
    std::erase_if(sizes, [&](int64_t rows) { return rows < usual / 2 || rows > most; });
  }
  return sizes;
}

}  // namespace

LengthFigures length_figures(const Sequences& sequences, const std::vector<SourceShare>& sources, int set) {
  const auto count = static_cast<double>(std::max<int64_t>(1, sequences.count()));
  const LengthTotals totals = sequences.totals(set);
  const int64_t longest = totals.longest;
  const auto is_drawn_once = [](const SourceShare& source) { return source.draws == source.chunks; };
  if (set > 0 || std::all_of(sources.begin(), sources.end(), is_drawn_once)) {  // sources count rows of the first set
    const double mean = static_cast<double>(totals.rows) / count;
    return {longest, mean, std::max(0.0, totals.squares / count - mean * mean)};
  }
  double rows = 0, draws = 0;
  for (const SourceShare& source : sources) {
    if (source.chunks == 0) continue;
    const auto drawn = static_cast<double>(source.draws);
    rows += drawn * static_cast<double>(source.rows) / static_cast<double>(source.chunks);
    draws += drawn;
  }
  const double mean = rows / std::max(1.0, draws);
  // A source's squares are not known: at most, with this mean, all sequences are empty or the longest.
  return {longest, mean, std::max(0.0, mean * (static_cast<double>(longest) - mean))};
}

int64_t rows_of_nearly_all_steps(int64_t per_step, const LengthFigures& lengths) {
  const auto count = static_cast<double>(per_step);
  const double needed = count * lengths.mean + 5 * std::sqrt(count * lengths.variance);
  return std::min(per_step * lengths.longest, round_up(static_cast<int64_t>(std::ceil(needed)), 64));
}

int64_t micro_batch_rows(int64_t asked, int64_t usual, int64_t per_step, const LengthFigures& lengths) {
  const int64_t most = per_step * lengths.longest;
  if (asked > 0) return std::max(lengths.longest, std::min(asked, most));
  const int64_t enough = std::max(kMicroBatchTokens, rows_of_nearly_all_steps(per_step, lengths));
  return std::max(lengths.longest, std::min({usual, most, enough}));
}

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
  std::vector<int64_t> sizes =
      sizes_to_try(options, loader_options.sequences_per_step, length_figures(*sequences, loader_options.sources));
  const int64_t least = std::max(options.capacity.longest, options.layout.least_rows(longest_of_sets(*sequences)));
  std::erase_if(sizes, [&](int64_t rows) { return rows < least; });
  if (sizes.empty()) sizes = {least};
  const int64_t most_rows = *std::max_element(sizes.begin(), sizes.end());
  const auto speed_of = [&](const EngineOptions& sized) -> std::optional<double> {
    const StepBatch step = first_step(sized, sequences, loader_options);
    if (!is_for_gpu(sized)) return time_size(sized, step);
    std::optional<double> speed;
    try {
      speed = time_size_on_gpu(sized, step, most_rows);
    } catch (const UserError&) {  // no memory after all: others may use the GPU, too
    }
    BRISK_RUN_ON_GPU(release_workspaces);
    return speed;
  };
  for (const int64_t rows : sizes) {
    EngineOptions sized = options;
    sized.capacity = options.layout.capacity(rows, options.capacity.longest);
    if (!fits(sized)) {
      unmeasured.push_back(fmt::format("{} does not fit", rows));
    } else if (measured.size() >= 3 && seconds_since(start) > kBudgetSeconds) {
      unmeasured.push_back(fmt::format("{} not tried", rows));
    } else if (const std::optional<double> speed = speed_of(sized)) {
      measured.push_back({rows, *speed});
    } else {
      unmeasured.push_back(fmt::format("{} does not fit", rows));
    }
  }
  if (measured.empty()) return {options.capacity.rows, "the smallest size: no larger one fits in memory"};
  std::sort(measured.begin(), measured.end(), [](const Measured& a, const Measured& b) { return a.rows < b.rows; });
  Measured best = measured.front();
  std::vector<std::string> parts;
  for (const Measured& candidate : measured) {
    parts.push_back(fmt::format("{} {}", candidate.rows, format_count(candidate.speed)));
    if (candidate.speed > kWorthwhile * best.speed) best = candidate;
  }
  parts.insert(parts.end(), unmeasured.begin(), unmeasured.end());
  return {best.rows,
          fmt::format("{} tokens, the fastest measured ({} tokens/s); it changes speed and memory, not the result",
                      best.rows, fmt::join(parts, ", "))};
}

}  // namespace brisk
