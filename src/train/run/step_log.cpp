#include "train/run/step_log.h"

#include <algorithm>
#include <cmath>

#include "base/machine/machine.h"

namespace brisk {

namespace {

constexpr int64_t kEarlySteps = 3;

}  // namespace

StepLog::StepLog(TrainingSetup& setup) : setup_(setup), epoch_start_(setup.ledger.totals()) {}

void StepLog::count(const StepBatch& batch, const StepResult& result, double seconds) {
  // Since the last logged line; saved, so that a resumed curve has the same lines.
  auto& sums = setup_.state.accumulators;
  if (std::isfinite(result.loss_sum)) {  // a skipped step that is finite shows in the curve; one that is not, cannot
    sums["loss_sum"] += result.loss_sum;
    sums["correct"] += static_cast<double>(result.correct);
    sums["tokens"] += static_cast<double>(result.targets);
    if (setup_.job.training.class_weights != "none") sums["weights"] += result.weight_sum;
    epoch_.loss_sum += result.loss_sum;
    epoch_.weight_sum += result.weight_sum;
    constexpr double kFade = 0.95;  // about the last twenty
    recent_loss_ = kFade * recent_loss_ + result.loss_sum;
    recent_weight_ = kFade * recent_weight_ + result.weight_sum;
  }
  window_seconds_ += seconds;
  if (whole_.steps == 0) setup_.summary.first_step_seconds = seconds_since_process_start();
  if (!result.overflowed) last_gradient_norm_ = result.gradient_norm;
  for (Counts* counts : {&whole_, &epoch_, &window_}) {
    ++counts->steps;
    counts->tokens += result.tokens;
    counts->sequences += batch.sequences;
  }
  if (whole_.steps > 1 && whole_.steps <= kEarlySteps) {
    early_seconds_ += seconds;
    early_tokens_ += result.tokens;
  }
}

void StepLog::went_back() {
  epoch_ = window_ = {};
  window_seconds_ = recent_loss_ = recent_weight_ = 0;
  epoch_start_ = setup_.ledger.totals();
}

Progress StepLog::progress(const StepBatch& batch) const {
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  Progress progress;
  progress.epoch = batch.cursor.epoch + 1;
  progress.epochs = setup_.epochs;
  progress.step = setup_.state.step;
  progress.steps = setup_.total_steps;
  progress.loss = recent_weight_ > 0 ? recent_loss_ / recent_weight_ : std::nan("");
  progress.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_.tokens) / window_seconds_ : 0;
  progress.elapsed_seconds = elapsed;
  if (setup_.gpu) progress.gpu = format_gpu(setup_.gpu->latest().value_or(GpuReading{}));
  if (const LossScale* scale = setup_.engine->loss_scale()) progress.skipped_steps = scale->skipped_steps;
  progress.seconds_left = elapsed / static_cast<double>(std::max<int64_t>(1, whole_.steps)) *
                          static_cast<double>(setup_.total_steps - setup_.state.step);
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
  line.loss = weights > 0 ? sums["loss_sum"] / weights : std::nan("");
  line.accuracy = targets > 0 ? sums["correct"] / targets : std::nan("");
  line.learning_rate = rate;
  line.gradient_norm = last_gradient_norm_;
  line.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_.tokens) / window_seconds_ : 0;
  line.step_ms = 1e3 * window_seconds_ / static_cast<double>(std::max<int64_t>(1, window_.steps));
  line.seconds = seconds;
  line.skipped_updates = setup_.state.guard.skipped;
  line.rollbacks = setup_.state.guard.rollbacks;
  if (setup_.gpu) line.gpu = setup_.gpu->latest();
  if (const LossScale* scale = setup_.engine->loss_scale()) line.loss_scale = *scale;
  sums.clear();
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

EpochRow StepLog::end_epoch(int64_t epoch, const Ledger::Totals& now) {
  EpochRow row;
  row.epoch = epoch;
  row.step = setup_.state.step;
  row.training_loss = epoch_.weight_sum > 0 ? epoch_.loss_sum / epoch_.weight_sum : epoch_.loss_sum;
  row.evaluation = setup_.summary.last_evaluation;
  row.speed = speed_of(setup_, epoch_, now - epoch_start_);
  row.skipped_updates = epoch_.skipped;
  epoch_ = {};
  return row;
}

bool StepLog::has_early_steps() const { return whole_.steps == kEarlySteps; }

double StepLog::early_seconds_per_token() const {
  return early_seconds_ / static_cast<double>(std::max<int64_t>(1, early_tokens_));
}

}  // namespace brisk
