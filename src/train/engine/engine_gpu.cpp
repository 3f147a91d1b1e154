// Training steps on a GPU.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/runtime.h"
#include "train/engine/engine_runs.h"

namespace brisk {

namespace {

constexpr int64_t kStepsBetweenSamples = 1000;
constexpr int64_t kMostWaiting = 16;  // steps, for one whose sizes have all run before
constexpr size_t kMostGraphs = 64;    // of micro-batches; a graph takes about a megabyte

// BRISK_CUDA_GRAPHS=0: every op is launched by itself, for finding faults.
bool wants_graphs() { return Runtime::current().environment("BRISK_CUDA_GRAPHS") != "0"; }

int64_t rows_of(const StepBatch& batch) {
  int64_t rows = 0;
  for (const MicroBatch& micro_batch : batch.micro_batches) rows += micro_batch.rows();
  return rows;
}

}  // namespace

Engine::GpuTraining::Shape Engine::GpuTraining::shape_of(const DeviceBatch& batch) {
  const DeviceBatch::Set& first = batch.sets[0];
  const DeviceBatch::Set second = batch.sets.size() > 1 ? batch.sets[1] : DeviceBatch::Set{};
  return {first.rows.rows,       first.rows.sequences, first.rows.longest,     second.rows.rows,
          second.rows.sequences, second.rows.longest,  first.types != nullptr, second.weights != nullptr,
          batch.first_of_step,   first.rows.even,      second.rows.even};
}

// Whether the next step is to be measured op by op: the second, and one in a thousand, as soon as its sizes have run
// before, so that no choice of an algorithm is in it.
bool Engine::GpuTraining::wants_sample() const {
  return passes >= 1 && (last_sample == 0 || passes + 1 - last_sample >= kStepsBetweenSamples);
}

bool Engine::GpuTraining::run(Device& device, Recorded& recorded, bool op_by_op, const std::function<void()>& work) {
  const bool is_new = recorded.seen++ == 0;
  if (op_by_op || !wants_graphs() || is_new) {
    work();
    return !is_new;
  }
  const bool is_recorded = recorded.graph != nullptr;
  if (!is_recorded) recorded.graph = device.record(work);
  recorded.graph->run();
  return is_recorded;
}

int64_t Engine::settled_passes() const { return gpu_ ? gpu_->settled : std::numeric_limits<int64_t>::max(); }

// Forward and backward of all micro-batches: gradients and sums of the loss. Parameters stay as they are, so this may
// run while the host does not know yet what came of the step before.
void Engine::queue_pass(const StepBatch& batch, int64_t step, bool may_sample, Ledger& ledger) {
  GpuTraining& gpu = *gpu_;
  Program& program = *training_->program;
  const double divisor = batch.loss_divisor() > 0 ? batch.loss_divisor() : 1.0;
  const double scaling = loss_scale_ ? loss_scale_->scale : 1.0;
  DeviceBatch device_batch;
  device_batch.step_loss_scale = &gpu.step.numbers()->loss_scale;
  device_batch.step_key = &gpu.step.numbers()->step_key;
  Ledger unseen;
  const auto run_ops = [&] {
    program.forward(device_batch, unseen);
    program.backward(device_batch, unseen);
    gpu.step.add_loss(program.value(training_->loss.sums, device_batch), device_batch.first_of_step);
  };

  GpuTraining::Pass pass{.step = step};
  gpu.step.begin_pass(step, scaling / divisor, options_.seed);
  bool samples = may_sample && gpu.wants_sample();
  const int64_t due = gpu.last_sample == 0 ? 1 : gpu.last_sample + kStepsBetweenSamples - 1;
  const bool is_overdue = gpu.passes >= due + kMostWaiting;
  gpu.clock.reset();
  bool is_settled = true;
  for (size_t i = 0; i < batch.micro_batches.size(); ++i) {
    // Two sets of slots in turn: while one is read by a step that is not done, the other is filled.
    const size_t slot = 2 * i + static_cast<size_t>(gpu.passes % 2);
    {
      Ledger::Scope scope(ledger, Phase::copy);
      batch_buffer_.queue(batch.micro_batches[i], slot, device_batch.sets);
    }
    device_batch.first_of_step = i == 0;
    const GpuTraining::Shape shape = GpuTraining::shape_of(device_batch);
    if (gpu.micro_batches.size() >= kMostGraphs && !gpu.micro_batches.contains(shape)) {
      device_.wait();
      gpu.micro_batches.clear();
    }
    GpuTraining::Recorded& recorded = gpu.micro_batches[shape];
    samples = samples && (recorded.seen > 0 || is_overdue);
    if (samples && !gpu.clock) gpu.clock = std::make_unique<PhaseClock>(device_);
    program.set_clock(samples ? gpu.clock.get() : nullptr);
    if (!GpuTraining::run(device_, recorded, samples, run_ops)) is_settled = false;
    pass.tokens += batch.micro_batches[i].rows();
  }
  program.set_clock(nullptr);
  if (!samples) gpu.clock.reset();
  ++gpu.passes;
  gpu.settled = is_settled ? gpu.settled + 1 : 0;
  gpu.pass_done->set();
  gpu.pass = pass;
}

// A step is two parts: the pass, and the update, for which the host must know how the step before went (rate and limits
// may depend on it). The host queues the update of this step, then the pass of the next, and only then waits for this
// step's numbers: so it has the time of a whole pass for logging, for the batch after that and for its way to the GPU,
// and the GPU never waits. What the host decides on, it decides on with the same numbers as if it had waited: while it
// does, parameters and optimizer are those of this step. Now and then a step is queued op by op, with stamps of the
// GPU's clock between; the ledger divides the others as that one was.
StepResult Engine::train_on_gpu(const StepBatch& batch, int64_t step, double rate, Ledger& ledger,
                                const UpdateLimits& limits, const NextBatch& next) {
  GpuTraining& gpu = *gpu_;
  const bool ahead = gpu.pass && gpu.pass->step == step;
  const bool is_busy = ahead && !gpu.pass_done->reached();
  if (!ahead) {
    forget_ahead();
    queue_pass(batch, step, true, ledger);
  }
  const GpuTraining::Pass pass = *gpu.pass;
  BRISK_CHECK(!ahead || pass.tokens == rows_of(batch), "step {} was begun with another batch", step);
  gpu.pass.reset();
  const bool samples = gpu.clock != nullptr;
  const double scaling = loss_scale_ ? loss_scale_->scale : 1.0;
  gpu.step.begin_update({step, rate, limits.gradient_norm, limits.loss, scaling});
  if (samples) {
    gpu.clock->restart();
    gpu.step.decide();
    gpu.clock->stamp(Phase::clipping);
    gpu.step.update();
    gpu.clock->stamp(Phase::optimizer);
    gpu.step.publish();
  } else {
    GpuTraining::run(device_, gpu.update, false, [&] {
      gpu.step.decide();
      gpu.step.update();
      gpu.step.publish();
    });
  }
  gpu.step.finish();
  bool looked_ahead = false;
  // With a loss that is scaled the next pass depends on how this one went.
  if (next && !samples && !gpu.wants_sample() && !loss_scale_) {
    if (const StepBatch* following = next()) {
      queue_pass(*following, step + 1, false, ledger);
      looked_ahead = true;
    }
  }
  // The GPU had work from the last step to here.
  if (is_busy && !gpu.step.is_done()) ledger.hide_host(gpu.last_totals, gpu.shares);
  const StepNumbers numbers = gpu.step.result();
  if (samples) {
    gpu.shares = gpu.clock->totals();
    gpu.last_sample = gpu.passes;
    gpu.clock.reset();
  }
  if (gpu.passes == 1) gpu.shares.nanoseconds[static_cast<size_t>(Phase::start_up)] = 1;  // algorithms were chosen
  ledger.spread(gpu.shares);
  gpu.last_totals = ledger.totals();

  StepResult result;
  result.tokens = pass.tokens;
  result.loss_sum = numbers.loss_sum;
  result.correct = std::llround(numbers.correct);
  result.targets = std::llround(numbers.targets);
  result.weight_sum = numbers.weight_sum;
  result.gradient_norm = std::sqrt(numbers.squared_norm) / scaling;
  result.updated = numbers.applied > 0;
  result.scaling = scaling;
  if (loss_scale_ && std::isfinite(result.loss_sum)) {
    result.overflowed = !std::isfinite(result.gradient_norm) && loss_scale_->can_fall();
    if (result.overflowed || result.finite()) loss_scale_->observe(result.finite());
  }
  // Who asks where it comes from finds this step's gradient, not that of the next.
  if (looked_ahead && !result.finite()) {
    forget_ahead();
    queue_pass(batch, step, false, ledger);
    forget_ahead();
  }
  return result;
}

// Its batch may still be on its way: the memory that it comes from must not be used again before.
void Engine::forget_ahead() {
  if (!gpu_ || !gpu_->pass) return;
  device_.wait();
  gpu_->pass.reset();
}

}  // namespace brisk
