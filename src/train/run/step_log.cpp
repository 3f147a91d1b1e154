#include "train/run/step_log.h"

#include <cmath>
#include <utility>

namespace brisk {

namespace {

constexpr int64_t kEarlySteps = 3;
constexpr double kRecentSteps = 20;  // whose pace tells how long the rest will take

}  // namespace

void StepLog::count(const StepResult& result, double seconds) {
  // Since the last logged line; saved, so that a resumed curve has the same lines.
  CheckpointState& state = run_.state;
  if (std::isfinite(result.loss_sum)) {  // a skipped step that is finite shows in the curve; one that is not, cannot
    const auto targets = static_cast<double>(result.targets);
    const bool weighted = plan_.job.training.class_weights.word != "none";
    const LossSums step{.loss = result.loss_sum,
                        .correct = static_cast<double>(result.correct),
                        .targets = targets,
                        .weights = weighted ? result.weight_sum : targets};
    state.loss_sums += step;
    state.epoch_sums += step;
    constexpr double kFade = 0.95;  // about the last twenty
    state.recent_loss = kFade * state.recent_loss + step.loss;
    state.recent_weights = kFade * state.recent_weights + step.weights;
  }
  ++state.epoch_steps;
  window_seconds_ += seconds;
  if (whole_.steps == 0) run_.summary.first_step_seconds = run_.ledger.totals().seconds();
  if (!result.overflowed) last_gradient_norm_ = result.gradient_norm;
  for (Counts* counts : {&whole_, &epoch_, &window_}) {
    ++counts->steps;
    counts->tokens += result.tokens;
    counts->sequences += result.sequences;
    counts->rows += result.rows;
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

void StepLog::skipped() { ++run_.state.epoch_skipped; }

// By the pace of the last steps, with the evaluations and checkpoints that came between the steps so far; inside a time
// box, what is left of it.
double StepLog::seconds_left(const Ledger::Totals& now) const {
  if (run_.time_box) return std::max(0.0, run_.time_box->seconds() - run_.elapsed_before - now.seconds());
  const Ledger::Totals since = now - process_start_;
  const double between = since.seconds() - training_seconds(since);
  const double per_step = recent_step_seconds_ + between / static_cast<double>(std::max<int64_t>(1, whole_.steps));
  return per_step * static_cast<double>(run_.total_steps - run_.state.step);
}

void StepLog::went_back() {
  epoch_ = window_ = {};
  window_seconds_ = 0;
  epoch_start_ = run_.ledger.totals();
}

Progress StepLog::progress(const StepBatch& batch) const {
  Progress progress;
  progress.epoch = batch.cursor.epoch + 1;
  progress.epochs = run_.epochs;
  progress.step = run_.state.step;
  progress.steps = run_.total_steps;
  const CheckpointState& state = run_.state;
  progress.loss = state.recent_weights > 0 ? state.recent_loss / state.recent_weights : std::nan("");
  progress.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_.tokens) / window_seconds_ : 0;
  progress.elapsed_seconds = plan_.clock().seconds_since(started_);
  const std::vector<GpuReading> gpus = gpu_readings();
  if (!gpus.empty()) progress.gpu = gpus.size() == 1 ? format_gpu(gpus.front()) : format_gpus(gpus);
  if (const LossScale* scale = resources_.engine->loss_scale()) progress.skipped_steps = scale->skipped_steps;
  progress.seconds_left = seconds_left(run_.ledger.totals());
  return progress;
}

// Of every rank of this machine, this one's first.
std::vector<GpuReading> StepLog::gpu_readings() const {
  std::vector<GpuReading> readings;
  if (resources_.gpu) readings.push_back(resources_.gpu->latest().value_or(GpuReading{}));
  for (const auto& gpu : resources_.other_gpus) readings.push_back(gpu->latest().value_or(GpuReading{}));
  return readings;
}

StepMetrics StepLog::line(const StepBatch& batch, double rate, double seconds) {
  const LossSums sums = std::exchange(run_.state.loss_sums, {});
  StepMetrics line;
  line.step = run_.state.step;
  line.epoch = batch.cursor.epoch + 1;
  line.tokens = run_.state.tokens_seen;
  if (plan_.loader_options.padding.any() && window_.rows > 0)
    line.padding = 1 - static_cast<double>(window_.tokens) / static_cast<double>(window_.rows);
  line.metrics = {standard_metric("loss", sums.mean_loss()), standard_metric("accuracy", sums.accuracy())};
  line.learning_rate = rate;
  line.gradient_norm = last_gradient_norm_;
  line.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_.tokens) / window_seconds_ : 0;
  line.step_ms = 1e3 * window_seconds_ / static_cast<double>(std::max<int64_t>(1, window_.steps));
  line.seconds = seconds;
  line.skipped_updates = run_.state.guard.skipped;
  line.rollbacks = run_.state.guard.rollbacks;
  if (resources_.gpu) line.gpu = resources_.gpu->latest();
  if (!resources_.other_gpus.empty()) line.gpus = gpu_readings();
  if (const LossScale* scale = resources_.engine->loss_scale()) line.loss_scale = *scale;
  window_ = {};
  window_seconds_ = 0;
  return line;
}

Speed StepLog::speed_of(const Counts& counts, const Ledger::Totals& totals) const {
  const Device& device = resources_.engine->parameters().device();
  return {totals.seconds(),
          counts.tokens,
          counts.steps,
          counts.sequences,
          plan_.flop_per_token,
          resources_.peak->gflops(),
          training_seconds(totals),
          device.memory().peak(),
          peak_memory_bytes(),
          own_memory_,
          plan_.memory.total() + (device.is_cuda() ? 0 : plan_.memory.copy_bytes),
          counts.rows};
}

Speed StepLog::speed(const Ledger::Totals& totals) const { return speed_of(whole_, totals); }

EpochRow StepLog::epoch_so_far(const DataCursor& last, const Ledger::Totals& now) const {
  const CheckpointState& state = run_.state;
  EpochRow row;
  row.epoch = last.epoch + 1;
  row.step = state.step;
  row.share = static_cast<double>(last.step + 1) / static_cast<double>(plan_.steps_per_epoch);
  row.training_loss = state.epoch_sums.mean_loss();
  row.training_accuracy = state.epoch_sums.accuracy();
  if (plan_.task->metrics().find("perplexity") != nullptr) row.training_perplexity = std::exp(row.training_loss);
  row.skipped_updates = state.epoch_skipped;
  const int64_t steps = last.step + 1;
  if (state.epoch_steps < steps)
    row.since_step = row.step - state.epoch_steps + 1;  // the checkpoint of an earlier brisk had none of them
  const auto& evaluation = run_.summary.last_evaluation;
  if (evaluation && evaluation->step > row.step - steps) row.evaluation = evaluation;
  row.speed = speed_of(epoch_, now - epoch_start_);
  row.speed.seconds = epoch_seconds(phases_of(now - epoch_start_));
  return row;
}

EpochRow StepLog::end_epoch(const StepPlace& place, const Ledger::Totals& now) {
  EpochRow row = epoch_so_far(place.cursor, now);
  if (place.last_of_epoch) {
    run_.state.epoch_sums = {};
    run_.state.epoch_steps = run_.state.epoch_skipped = 0;
  }
  epoch_ = {};
  return row;
}

bool StepLog::has_early_steps() const { return whole_.steps == kEarlySteps; }

double StepLog::early_seconds_per_token() const {
  return early_seconds_ / static_cast<double>(std::max<int64_t>(1, early_tokens_));
}

}  // namespace brisk
