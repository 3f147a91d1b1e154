#include "train/run/step_log.h"

#include <algorithm>
#include <cmath>
#include <utility>


namespace brisk {

namespace {

constexpr int64_t kEarlySteps = 3;

}  // namespace

StepLog::StepLog(TrainingSetup& setup) : setup_(setup), epoch_start_(setup.ledger.totals()) {}

void StepLog::count(const StepBatch& batch, const StepResult& result, double seconds) {
  // Since the last logged line; saved, so that a resumed curve has the same lines.
  LossSums& sums = setup_.state.loss_sums;
  if (std::isfinite(result.loss_sum)) {  // a skipped step that is finite shows in the curve; one that is not, cannot
    sums.loss += result.loss_sum;
    sums.correct += static_cast<double>(result.correct);
    sums.targets += static_cast<double>(result.targets);
    const bool weighted = setup_.job.training.class_weights != "none";
    sums.weights += weighted ? result.weight_sum : static_cast<double>(result.targets);
    epoch_.loss_sum += result.loss_sum;
    epoch_.weight_sum += result.weight_sum;
  }
  window_seconds_ += seconds;
  if (whole_.steps == 0) setup_.summary.first_step_seconds = setup_.ledger.totals().seconds();
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
  window_seconds_ = 0;
  epoch_start_ = setup_.ledger.totals();
}

Progress StepLog::progress(const StepBatch& batch) const {
  const double elapsed = setup_.clock().seconds_since(started_);
  Progress progress;
  progress.epoch = batch.cursor.epoch + 1;
  progress.epochs = setup_.epochs;
  progress.step = setup_.state.step;
  progress.steps = setup_.total_steps;
  const LossSums& sums = setup_.state.loss_sums;
  progress.loss = sums.weights > 0 ? sums.loss / sums.weights : last_loss_;
  progress.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_.tokens) / window_seconds_ : 0;
  progress.elapsed_seconds = elapsed;
  if (setup_.gpu) progress.gpu = format_gpu(setup_.gpu->latest().value_or(GpuReading{}));
  if (const LossScale* scale = setup_.engine->loss_scale()) progress.skipped_steps = scale->skipped_steps;
  progress.seconds_left = elapsed / static_cast<double>(std::max<int64_t>(1, whole_.steps)) *
                          static_cast<double>(setup_.total_steps - setup_.state.step);
  return progress;
}

StepMetrics StepLog::line(const StepBatch& batch, double rate, double seconds) {
  const LossSums sums = std::exchange(setup_.state.loss_sums, {});
  StepMetrics line;
  line.step = setup_.state.step;
  line.epoch = batch.cursor.epoch + 1;
  line.tokens = setup_.state.tokens_seen;
  // 0: none of the steps was finite, nor is the loss.
  line.loss = sums.weights > 0 ? sums.loss / sums.weights : std::nan("");
  line.accuracy = sums.targets > 0 ? sums.correct / sums.targets : std::nan("");
  line.learning_rate = rate;
  line.gradient_norm = last_gradient_norm_;
  line.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_.tokens) / window_seconds_ : 0;
  line.step_ms = 1e3 * window_seconds_ / static_cast<double>(std::max<int64_t>(1, window_.steps));
  line.seconds = seconds;
  line.skipped_updates = setup_.state.guard.skipped;
  line.rollbacks = setup_.state.guard.rollbacks;
  if (setup_.gpu) line.gpu = setup_.gpu->latest();
  if (const LossScale* scale = setup_.engine->loss_scale()) line.loss_scale = *scale;
  last_loss_ = line.loss;
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
          setup.engine->parameters().device().memory().peak()};
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
