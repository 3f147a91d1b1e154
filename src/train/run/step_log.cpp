#include "train/run/step_log.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/machine/machine.h"

namespace brisk {

namespace {

constexpr int64_t kEarlySteps = 3;
constexpr double kRecentSteps = 20;  // whose pace tells how long the rest will take

// Of an epoch, in the checkpoint next to the sums of a line: a resumed run has the whole epoch.
constexpr std::string_view kEpochPrefix = "epoch_";
constexpr const char* kEpochLoss = "epoch_loss_sum";
constexpr const char* kEpochWeights = "epoch_weights";
constexpr const char* kEpochCorrect = "epoch_correct";
constexpr const char* kEpochTargets = "epoch_targets";
constexpr const char* kEpochSteps = "epoch_steps";
constexpr const char* kEpochSkipped = "epoch_skipped";

// Of the last steps, older ones fading out, for the progress line.
constexpr std::string_view kRecentPrefix = "recent_";
constexpr const char* kRecentLoss = "recent_loss";
constexpr const char* kRecentWeights = "recent_weights";

bool is_of_epoch(const std::pair<const std::string, double>& sum) { return sum.first.starts_with(kEpochPrefix); }
bool is_of_line(const std::pair<const std::string, double>& sum) {
  return !is_of_epoch(sum) && !sum.first.starts_with(kRecentPrefix);
}

}  // namespace

StepLog::StepLog(TrainingSetup& setup)
    : setup_(setup), process_start_(setup.ledger.totals()), epoch_start_(process_start_) {}

void StepLog::count(const StepResult& result, double seconds) {
  // Since the last logged line; saved, so that a resumed curve has the same lines.
  auto& sums = setup_.state.accumulators;
  if (std::isfinite(result.loss_sum)) {  // a skipped step that is finite shows in the curve; one that is not, cannot
    sums["loss_sum"] += result.loss_sum;
    sums["correct"] += static_cast<double>(result.correct);
    sums["tokens"] += static_cast<double>(result.targets);
    if (setup_.job.training.class_weights.word != "none") sums["weights"] += result.weight_sum;
    sums[kEpochLoss] += result.loss_sum;
    sums[kEpochWeights] += result.weight_sum;
    sums[kEpochCorrect] += static_cast<double>(result.correct);
    sums[kEpochTargets] += static_cast<double>(result.targets);
    constexpr double kFade = 0.95;  // about the last twenty
    sums[kRecentLoss] = kFade * sums[kRecentLoss] + result.loss_sum;
    sums[kRecentWeights] = kFade * sums[kRecentWeights] + result.weight_sum;
  }
  sums[kEpochSteps] += 1;
  window_seconds_ += seconds;
  if (whole_.steps == 0) setup_.summary.first_step_seconds = seconds_since_process_start();
  if (!result.overflowed) last_gradient_norm_ = result.gradient_norm;
  for (Counts* counts : {&whole_, &epoch_, &window_}) {
    ++counts->steps;
    counts->tokens += result.tokens;
    counts->sequences += result.sequences;
  }
  // The first step touches all memory for the first time; the second replaces it.
  recent_step_seconds_ +=
      (seconds - recent_step_seconds_) *
      (whole_.steps <= 2 ? 1 : std::max(1 / static_cast<double>(whole_.steps - 1), 1 / kRecentSteps));
  if (whole_.steps > 1 && whole_.steps <= kEarlySteps) {
    early_seconds_ += seconds;
    early_tokens_ += result.tokens;
  }
}

void StepLog::skipped() { setup_.state.accumulators[kEpochSkipped] += 1; }

// By the pace of the last steps, with the evaluations and checkpoints that came between the steps so far; inside a time
// box, what is left of it.
double StepLog::seconds_left(const Ledger::Totals& now) const {
  if (setup_.time_box) return std::max(0.0, setup_.time_box->seconds() - setup_.elapsed_before - now.seconds());
  const Ledger::Totals since = now - process_start_;
  const double between = since.seconds() - training_seconds(since);
  const double per_step = recent_step_seconds_ + between / static_cast<double>(std::max<int64_t>(1, whole_.steps));
  return per_step * static_cast<double>(setup_.total_steps - setup_.state.step);
}

void StepLog::went_back() {
  epoch_ = window_ = {};
  window_seconds_ = 0;
  epoch_start_ = setup_.ledger.totals();
}

Progress StepLog::progress(const StepBatch& batch) const {
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  Progress progress;
  progress.epoch = batch.cursor.epoch + 1;
  progress.epochs = setup_.epochs;
  progress.step = setup_.state.step;
  progress.steps = setup_.total_steps;
  auto& sums = setup_.state.accumulators;
  progress.loss = sums[kRecentWeights] > 0 ? sums[kRecentLoss] / sums[kRecentWeights] : std::nan("");
  progress.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_.tokens) / window_seconds_ : 0;
  progress.elapsed_seconds = elapsed;
  if (setup_.gpu) progress.gpu = format_gpu(setup_.gpu->latest().value_or(GpuReading{}));
  if (const LossScale* scale = setup_.engine->loss_scale()) progress.skipped_steps = scale->skipped_steps;
  progress.seconds_left = seconds_left(setup_.ledger.totals());
  return progress;
}

StepMetrics StepLog::line(const StepBatch& batch, double rate, double seconds) {
  auto& sums = setup_.state.accumulators;
  StepMetrics line;
  line.step = setup_.state.step;
  line.epoch = batch.cursor.epoch + 1;
  line.tokens = setup_.state.tokens_seen;
  const double targets = sums["tokens"];  // 0: none of the steps was finite, nor is the loss
  const double weights = sums.contains("weights") ? sums["weights"] : targets;
  line.metrics = {standard_metric("loss", weights > 0 ? sums["loss_sum"] / weights : Metric::kNone),
                  standard_metric("accuracy", targets > 0 ? sums["correct"] / targets : Metric::kNone)};
  line.learning_rate = rate;
  line.gradient_norm = last_gradient_norm_;
  line.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_.tokens) / window_seconds_ : 0;
  line.step_ms = 1e3 * window_seconds_ / static_cast<double>(std::max<int64_t>(1, window_.steps));
  line.seconds = seconds;
  line.skipped_updates = setup_.state.guard.skipped;
  line.rollbacks = setup_.state.guard.rollbacks;
  if (setup_.gpu) line.gpu = setup_.gpu->latest();
  if (const LossScale* scale = setup_.engine->loss_scale()) line.loss_scale = *scale;
  std::erase_if(sums, is_of_line);
  window_ = {};
  window_seconds_ = 0;
  return line;
}

Speed StepLog::speed_of(const TrainingSetup& setup, const Counts& counts, const Ledger::Totals& totals) {
  return {totals.seconds(),
          counts.tokens,
          counts.steps,
          counts.sequences,
          setup.flop_per_token,
          setup.peak->gflops(),
          training_seconds(totals),
          setup.engine->parameters().device().memory().peak(),
          setup.own_memory,
          setup.memory.total() + (setup.engine->parameters().device().is_cuda() ? 0 : setup.memory.copy_bytes)};
}

Speed StepLog::speed(const Ledger::Totals& totals) const { return speed_of(setup_, whole_, totals); }

EpochRow StepLog::epoch_so_far(const DataCursor& last, const Ledger::Totals& now) const {
  const auto& sums = setup_.state.accumulators;
  const auto sum = [&](const char* name) { return sums.contains(name) ? sums.at(name) : 0.0; };
  EpochRow row;
  row.epoch = last.epoch + 1;
  row.step = setup_.state.step;
  row.training_loss = sum(kEpochWeights) > 0 ? sum(kEpochLoss) / sum(kEpochWeights) : std::nan("");
  row.training_accuracy = sum(kEpochTargets) > 0 ? sum(kEpochCorrect) / sum(kEpochTargets) : std::nan("");
  row.skipped_updates = std::llround(sum(kEpochSkipped));
  const int64_t summed = std::llround(sum(kEpochSteps)), steps = last.step + 1;
  if (summed < steps) row.since_step = row.step - summed + 1;  // the checkpoint of an earlier brisk had none of them
  const auto& evaluation = setup_.summary.last_evaluation;
  if (evaluation && evaluation->step > row.step - steps) row.evaluation = evaluation;
  row.speed = speed_of(setup_, epoch_, now - epoch_start_);
  return row;
}

EpochRow StepLog::end_epoch(const StepBatch& batch, const Ledger::Totals& now) {
  EpochRow row = epoch_so_far(batch.cursor, now);
  if (batch.last_of_epoch) std::erase_if(setup_.state.accumulators, is_of_epoch);
  epoch_ = {};
  return row;
}

bool StepLog::has_early_steps() const { return whole_.steps == kEarlySteps; }

double StepLog::early_seconds_per_token() const {
  return early_seconds_ / static_cast<double>(std::max<int64_t>(1, early_tokens_));
}

}  // namespace brisk
