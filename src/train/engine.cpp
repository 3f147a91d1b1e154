#include "train/engine.h"

#include <cmath>

#include "base/error.h"
#include "ops/parameters.h"

namespace brisk {

struct Engine::Run {
  Tape tape;
  LossValues loss;
  std::unique_ptr<Program> program;

  Run(const EngineOptions& options, const Decoder& decoder)
      : tape({.activation_type = options.compute_type, .rows = {options.capacity}}),
        loss(decoder.loss(tape, {.label_smoothing = options.label_smoothing})),
        program(std::make_unique<Program>(
            tape, ProgramOptions{.checkpoint_every = options.checkpoint_every, .backend = options.backend})) {}
};

bool StepResult::finite() const { return std::isfinite(loss_sum) && std::isfinite(gradient_norm); }

namespace {
ParameterStore::Moments moments_of(const EngineOptions& options) {
  return options.muon ? ParameterStore::Moments::one_of_hidden : ParameterStore::Moments::two;
}
}  // namespace

MemoryPlan plan_memory(const EngineOptions& options) {
  ParameterStore store;
  const Decoder decoder(options.model, store);
  const auto arena = [&](Tape::Purpose purpose) {
    Tape tape({.purpose = purpose, .activation_type = options.compute_type, .rows = {options.capacity}});
    decoder.loss(tape, {});
    const bool training = purpose == Tape::Purpose::training;
    return Program(tape, {.checkpoint_every = training ? options.checkpoint_every : 0, .backend = options.backend})
        .arena_bytes();
  };
  MemoryPlan plan;
  plan.parameters = store.count();
  plan.trained_parameters = store.trained_count();
  plan.state_bytes = store.bytes(options.compute_type, ParameterStore::Purpose::training, moments_of(options)) +
                     (options.muon ? Muon::workspace_bytes(store) : 0);
  plan.activation_bytes = arena(Tape::Purpose::training) + BatchBuffer::bytes(options.capacity);
  plan.evaluation_bytes = arena(Tape::Purpose::evaluation);
  return plan;
}

Engine::Engine(const EngineOptions& options)
    : options_(options),
      device_(options.device != nullptr ? *options.device : cpu_device()),
      decoder_(options.model, store_),
      training_(std::make_unique<Run>(options, decoder_)),
      batch_buffer_(device_, options.capacity) {
  store_.allocate(device_, training_->program->completion_order(), options.compute_type,
                  ParameterStore::Purpose::training, moments_of(options));
  if (options.muon) muon_ = std::make_unique<Muon>(store_, *options.muon);
  training_->program->allocate(device_);
}

Engine::~Engine() = default;

void Engine::initialise(uint64_t seed) {
  store_.initialise(seed);
  parameters_changed();
}

void Engine::parameters_changed() { refresh_compute_copies(store_); }

StepResult Engine::train_step(const StepBatch& batch, int64_t step, double rate, Ledger& ledger,
                              const UpdateLimits& limits) {
  StepResult result;
  DeviceBatch device_batch;
  device_batch.sets.resize(1);
  device_batch.loss_scale = 1.0f / static_cast<float>(std::max<int64_t>(1, batch.valid_tokens));
  device_batch.seed = options_.seed;
  device_batch.step = static_cast<uint64_t>(step);
  for (size_t i = 0; i < batch.micro_batches.size(); ++i) {
    {
      Ledger::Scope scope(ledger, Phase::copy);
      device_batch.sets[0] = batch_buffer_.load(batch.micro_batches[i]);
    }
    device_batch.first_of_step = i == 0;
    training_->program->forward(device_batch, ledger);
    training_->program->backward(device_batch, ledger);
    Ledger::Scope scope(ledger, Phase::copy);
    float sums[3] = {};
    device_.copy_out(sums, training_->program->value(training_->loss.sums, device_batch).data, sizeof(sums));
    result.loss_sum += sums[0];
    result.correct += std::lround(sums[1]);
    result.tokens += std::lround(sums[2]);
  }
  double scale = 1;
  {
    Ledger::Scope scope(ledger, Phase::clipping);
    result.gradient_norm = gradient_norm(store_);
    if (options_.max_grad_norm > 0 && result.gradient_norm > options_.max_grad_norm) {
      scale = options_.max_grad_norm / result.gradient_norm;
    }
  }
  const double loss = result.loss_sum / static_cast<double>(std::max<int64_t>(1, result.tokens));
  result.updated = result.finite() && result.gradient_norm <= limits.gradient_norm && loss <= limits.loss;
  if (result.updated) {
    Ledger::Scope scope(ledger, Phase::optimizer);
    adamw_step(store_, options_.adamw, step, rate, scale);
    if (muon_) muon_->step(rate, scale);
  }
  return result;
}

EvaluationResult Engine::evaluate(const TokenStream& stream, std::span<const Chunk> chunks, Ledger& ledger) {
  if (!evaluator_) {
    evaluator_ = std::make_unique<Evaluator>(decoder_, store_, options_.capacity, options_.backend);
  }
  return evaluator_->evaluate(stream, chunks, ledger);
}

std::string Engine::first_not_finite() const {
  const std::string parameter = brisk::first_not_finite(store_, false);
  return parameter.empty() ? brisk::first_not_finite(store_, true) : parameter;
}

}  // namespace brisk
