#include "train/engine/training_step.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace brisk {

namespace {

int64_t rows_of(const StepBatch& batch) {
  int64_t rows = 0;
  for (const MicroBatch& micro_batch : batch.micro_batches) rows += micro_batch.rows();
  return rows;
}

int64_t real_rows_of(const StepBatch& batch) {
  int64_t rows = 0;
  for (const MicroBatch& micro_batch : batch.micro_batches) rows += micro_batch.real_rows();
  return rows;
}

StepResult result_of(const StepNumbers& numbers, double scaling) {
  StepResult result;
  result.loss_sum = numbers.loss_sum;
  result.correct = std::llround(numbers.correct);
  result.targets = std::llround(numbers.targets);
  result.weight_sum = numbers.weight_sum;
  result.gradient_norm = std::sqrt(numbers.squared_norm) / scaling;
  result.updated = numbers.applied > 0;
  result.scaling = scaling;
  return result;
}

}  // namespace

bool StepResult::finite() const { return std::isfinite(loss_sum) && std::isfinite(gradient_norm); }
double StepResult::loss() const { return weight_sum > 0 ? loss_sum / weight_sum : loss_sum; }

TrainingStep::TrainingStep(StepBackend& backend, const ParameterStore& store, Optimizer& optimizer,
                           ProcessGroup& processes, std::unique_ptr<ShardTransport> transport, const Options& options)
    : backend_(backend),
      optimizer_(optimizer),
      processes_(processes),
      exchange_(store, backend.state(), processes, std::move(transport), options.exchange),
      options_(options),
      is_on_gpu_(store.device().is_cuda()) {
  if (options.scales_loss) loss_scale_.emplace();
  GradientListener listener = exchange_.listener();
  if (const GradientReady& told = options.gradient_ready) {
    listener.ready = [told, sends = std::move(listener.ready)](Parameter& parameter) {
      told(parameter);
      if (sends) sends(parameter);
    };
  }
  backend_.listen(std::move(listener));
}

// Forward and backward of all micro-batches: gradients and sums of the loss. Parameters stay as they are, so this may
// run while the host does not know yet what came of the step before.
void TrainingStep::run_pass(const StepBatch& batch, int64_t step, bool may_sample, Ledger& ledger) {
  const int64_t rows = rows_of(batch);
  // All that the ranks tell each other before the update, at once.
  std::array sums = {batch.loss_divisor(), static_cast<double>(real_rows_of(batch)),
                     static_cast<double>(batch.sequences), static_cast<double>(rows)};
  processes_.sum_each(sums);
  const double divisor = sums[0];
  backend_.begin_pass({.step = step,
                       .seed = options_.seed,
                       .loss_divisor = divisor > 0 ? divisor : 1.0,
                       .scaling = scaling(),
                       .may_sample = may_sample});
  const std::vector<StepBatch::Part> parts = batch.parts();
  exchange_.begin_pass();
  for (size_t p = 0; p < parts.size(); ++p) {
    const StepBatch::Part part = parts[p];
    for (int64_t i = part.begin; i < part.end; ++i) {
      const bool completes = p + 1 == parts.size() && i + 1 == part.end;
      backend_.run_micro_batch(batch.micro_batches[static_cast<size_t>(i)], i == part.begin, completes, ledger);
    }
    exchange_.end_part(part.begin == part.end);
  }
  exchange_.end_pass();
  backend_.end_pass();
  pass_ = Pass{.step = step,
               .own_rows = rows,
               .tokens = std::llround(sums[1]),
               .sequences = std::llround(sums[2]),
               .rows = std::llround(sums[3])};
}

// What a graph records must not depend on the step: its settings are in device memory before.
void TrainingStep::update(int64_t step, double rate, Ledger& ledger, const UpdateLimits& limits) {
  StepState& state = backend_.state();
  StepNumbers settings{
      .max_norm = options_.max_grad_norm, .norm_limit = limits.gradient_norm, .loss_limit = limits.loss};
  settings.scaling = static_cast<float>(scaling());
  optimizer_.set_rates(step, rate, settings);
  state.begin_update(settings);
  const bool has_ranks = exchange_.has_ranks();
  const auto decide = [&] {
    exchange_.sum();
    state.decide();
  };
  backend_.run_update([&] {
    if (has_ranks) backend_.run_phase(Phase::communication, ledger, [&] { exchange_.reduce(); });
    backend_.run_phase(Phase::clipping, ledger, [&] {
      exchange_.measure();
      if (!has_ranks) decide();
    });
    if (has_ranks) backend_.run_phase(Phase::communication, ledger, decide);
    backend_.run_phase(Phase::optimizer, ledger, [&] { optimizer_.update(state.numbers()); });
    if (has_ranks) backend_.run_phase(Phase::communication, ledger, [&] { exchange_.share(); });
    state.publish();
  });
}

// A step is two parts: the pass, and the update, for which the host must know how the step before went (rate and limits
// may depend on it). A GPU gets the update of this step, then the pass of the next, and only then the host waits for
// this step's numbers: so it has the time of a whole pass for logging, for the batch after that and for its way to the
// GPU, and the GPU never waits. What the host decides on, it decides on with the same numbers as if it had waited:
// while it does, parameters and optimizer are those of this step.
StepResult TrainingStep::run(const StepBatch& batch, int64_t step, double rate, Ledger& ledger,
                             const UpdateLimits& limits, const NextBatch& next) {
  const bool has_pass = pass_ && pass_->step == step;
  backend_.begin_step(has_pass);
  if (!has_pass) {
    cancel_next_pass();
    run_pass(batch, step, true, ledger);
  }
  const Pass pass = *std::exchange(pass_, std::nullopt);
  BRISK_CHECK(!has_pass || pass.own_rows == rows_of(batch), "step {} was begun with another batch", step);
  const double scaling = this->scaling();
  update(step, rate, ledger, limits);
  bool ran_ahead = false;
  // With a loss that is scaled the next pass depends on how this one went.
  if (is_on_gpu_ && next && !loss_scale_ && processes_.sum(backend_.can_run_ahead() ? 0.0 : 1.0) == 0) {
    if (const StepBatch* following = next()) {
      run_pass(*following, step + 1, false, ledger);
      ran_ahead = true;
    }
  }
  StepResult result = result_of(backend_.result(ledger), scaling);
  result.tokens = pass.tokens;
  result.sequences = pass.sequences;
  result.rows = pass.rows;
  if (loss_scale_ && std::isfinite(result.loss_sum)) {
    result.overflowed = !std::isfinite(result.gradient_norm) && loss_scale_->can_fall();
    if (result.overflowed || result.finite()) loss_scale_->observe(result.finite());
  }
  // Who asks where it comes from finds this step's gradient, not that of the next.
  if (ran_ahead && !result.finite()) {
    cancel_next_pass();
    run_pass(batch, step, false, ledger);
    cancel_next_pass();
  }
  return result;
}

// Its batch may still be on its way: the memory that it comes from must not be used again before.
void TrainingStep::cancel_next_pass() {
  if (!pass_) return;
  backend_.wait();
  pass_.reset();
}

}  // namespace brisk
