// Training steps on a card.
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "train/engine_runs.h"

namespace brisk {

namespace {

constexpr int64_t kStepsBetweenSamples = 1000;
constexpr size_t kMostGraphs = 64;  // of micro-batches; a graph takes about a megabyte

// BRISK_CUDA_GRAPHS=0: every op is launched by itself, for finding faults.
bool wants_graphs() {
  static const bool wants = [] {
    const char* value = std::getenv("BRISK_CUDA_GRAPHS");
    return value == nullptr || std::string_view(value) != "0";
  }();
  return wants;
}

}  // namespace

Engine::CardTraining::Shape Engine::CardTraining::shape_of(const DeviceBatch& batch) {
  const DeviceBatch::Set& first = batch.sets[0];
  const DeviceBatch::Set second = batch.sets.size() > 1 ? batch.sets[1] : DeviceBatch::Set{};
  return {first.rows.rows,       first.rows.sequences, first.rows.longest,     second.rows.rows,
          second.rows.sequences, second.rows.longest,  first.types != nullptr, second.weights != nullptr,
          batch.first_of_step,   first.rows.even,      second.rows.even};
}

// Nothing in a step that was seen before waits but result(): the host queues the whole step, and reads what came of it
// once. Now and then a step is queued op by op, with stamps of the card's clock between; the ledger divides the others
// as that one was.
StepResult Engine::train_on_card(const StepBatch& batch, int64_t step, double rate, Ledger& ledger,
                                 const UpdateLimits& limits) {
  CardTraining& card = *card_;
  Program& program = *training_->program;
  StepResult result;
  const double divisor = batch.loss_divisor() > 0 ? batch.loss_divisor() : 1.0;
  const double scaling = loss_scale_ ? loss_scale_->scale : 1.0;
  DeviceBatch device_batch;
  device_batch.step_loss_scale = &card.step.numbers()->loss_scale;
  device_batch.step_key = &card.step.numbers()->step_key;
  ++card.steps;
  const bool samples = card.steps == 2 || card.steps % kStepsBetweenSamples == 0;
  std::optional<PhaseClock> clock;
  Ledger unseen;
  const auto run_ops = [&] {
    program.forward(device_batch, unseen);
    program.backward(device_batch, unseen);
    card.step.add_loss(program.value(training_->loss.sums, device_batch), device_batch.first_of_step);
  };
  const auto run = [&](CardTraining::Recorded& recorded, const auto& work) {
    if (samples || !wants_graphs() || recorded.seen++ == 0) return work();
    if (!recorded.graph) recorded.graph = device_.record(work);
    recorded.graph->run();
  };

  {
    Ledger::Scope scope(ledger, Phase::copy);
    card.step.begin({step, rate, 1 / divisor, options_.seed, limits.gradient_norm, limits.loss, scaling});
    if (!batch.micro_batches.empty()) batch_buffer_.queue(batch.micro_batches[0], 0, device_batch.sets);
  }
  if (samples) program.set_clock(&clock.emplace(device_));
  for (size_t i = 0; i < batch.micro_batches.size(); ++i) {
    if (i > 0) batch_buffer_.queue(batch.micro_batches[i], i, device_batch.sets);
    device_batch.first_of_step = i == 0;
    const CardTraining::Shape shape = CardTraining::shape_of(device_batch);
    if (card.micro_batches.size() >= kMostGraphs && !card.micro_batches.contains(shape)) {
      device_.wait();
      card.micro_batches.clear();
    }
    run(card.micro_batches[shape], run_ops);
    result.tokens += batch.micro_batches[i].rows();
  }
  program.set_clock(nullptr);
  if (samples) {
    card.step.decide();
    clock->stamp(Phase::clipping);
    card.step.update();
    clock->stamp(Phase::optimizer);
  } else {
    run(card.update, [&] {
      card.step.decide();
      card.step.update();
    });
  }
  const StepNumbers numbers = card.step.result();
  if (samples) card.shares = clock->totals();
  if (card.steps == 1) card.shares.nanoseconds[static_cast<size_t>(Phase::start_up)] = 1;  // algorithms were chosen
  ledger.spread(card.shares);

  result.loss_sum = numbers.loss_sum;
  result.correct = std::llround(numbers.correct);
  result.targets = std::llround(numbers.targets);
  result.weight_sum = numbers.weight_sum;
  result.gradient_norm = std::sqrt(numbers.squared_norm) / scaling;
  result.updated = numbers.applied > 0;
  if (loss_scale_ && std::isfinite(result.loss_sum)) {
    result.overflowed = !std::isfinite(result.gradient_norm) && loss_scale_->can_fall();
    if (result.overflowed || result.finite()) loss_scale_->observe(result.finite());
  }
  return result;
}

}  // namespace brisk
