#include "train/engine/engine.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/optimizer/parameters.h"
#include "ops/tape/gpu_workspace.h"
#include "train/engine/engine_runs.h"

namespace brisk {

LossOptions EngineOptions::loss() const {
  return {
      .label_smoothing = label_smoothing, .soft_weight = distillation.weight, .temperature = distillation.temperature};
}

bool StepResult::finite() const { return std::isfinite(loss_sum) && std::isfinite(gradient_norm); }
double StepResult::loss() const { return weight_sum > 0 ? loss_sum / weight_sum : loss_sum; }

namespace {
// On a GPU the GPU's ops run.
EngineOptions placed(EngineOptions options) {
  if (options.device != nullptr && options.device->is_cuda()) options.backend = Backend::cuda;
  if (options.muon) options.muon->products = options.products;
  return options;
}

ParameterStore::Moments moments_of(const EngineOptions& options) {
  return options.muon ? ParameterStore::Moments::one_of_hidden : ParameterStore::Moments::two;
}

ParameterStore::Masters masters_of(const EngineOptions& options) {
  return options.master_weights ? ParameterStore::Masters::all : ParameterStore::Masters::not_of_hidden;
}
}  // namespace

MemoryPlan plan_memory(const EngineOptions& asked) {
  const EngineOptions options = placed(asked);
  ParameterStore store;
  const std::unique_ptr<Model> model = make_model(options.model, store);
  const std::vector<RowCapacity> rows = options.row_sets();
  const bool on_gpu = options.backend == Backend::cuda;
  MemoryPlan plan;
  const auto arena = [&](Tape::Purpose purpose) {
    Tape tape(
        {.purpose = purpose, .activation_type = options.compute_type, .rows = rows, .products = options.products});
    model->loss(tape, options.loss());
    const bool training = purpose == Tape::Purpose::training;
    const Program program(tape,
                          {.checkpoint_every = training ? options.checkpoint_every : 0, .backend = options.backend});
    if (training) {
      plan.batch_bytes = BatchBuffer::bytes(tape);
      if (on_gpu) plan.batch_bytes += 2 * BatchBuffer::column_bytes(rows);  // two more are on their way
      plan.loss_bytes = program.loss_scratch_bytes();
    }
    if (on_gpu) plan.workspace_bytes = std::max(plan.workspace_bytes, gpu_workspace_bytes(tape));
    if (on_gpu && training) plan.library_bytes = gpu_cudnn_bytes(tape);
    if (training && options.products == ProductFormat::fp8) plan.operand_bytes = gpu_operand_bytes(tape);
    return program.arena_bytes();
  };
  plan.parameters = store.count();
  plan.trained_parameters = store.trained_count();
  plan.state = store.byte_parts(options.compute_type, ParameterStore::Purpose::training, moments_of(options),
                                masters_of(options));
  plan.optimizer_bytes = options.muon ? Muon::workspace_bytes(store, on_gpu) : 0;
  plan.state_bytes = plan.state.total() + plan.optimizer_bytes;
  const int64_t training = arena(Tape::Purpose::training), evaluation = arena(Tape::Purpose::evaluation);
  plan.activation_bytes = training + plan.batch_bytes;
  plan.evaluation_bytes = on_gpu && evaluation <= training ? 0 : evaluation;
  plan.library_bytes = std::max<int64_t>(0, plan.library_bytes - plan.workspace_bytes);
  if (on_gpu) plan.workspace_bytes += kProductWorkspaceBytes + plan.operand_bytes;
  return plan;
}

Engine::Engine(const EngineOptions& options)
    : options_(placed(options)),
      device_(options.device != nullptr ? *options.device : cpu_device()),
      model_(make_model(options.model, store_)),
      training_(std::make_unique<Run>(options_, *model_)),
      batch_buffer_(device_, training_->tape) {
  store_.allocate(device_, training_->program->completion_order(), options.compute_type,
                  ParameterStore::Purpose::training, moments_of(options), masters_of(options));
  if (options_.muon) muon_ = std::make_unique<Muon>(store_, *options_.muon);
  training_->program->allocate(device_);
  BRISK_CHECK((options.compute_type != DType::f16 && options.master_weights) || device_.is_cuda(),
              "a GPU's on the CPU");
  if (options.compute_type == DType::f16) loss_scale_.emplace();
  if (device_.is_cuda()) {
    reserve_workspaces();
    gpu_ = std::make_unique<GpuTraining>(store_, options_, muon_.get());
  }
}

Engine::~Engine() {
  try {
    forget_ahead();
  } catch (const std::exception&) {  // a GPU that failed has said so before
  }
}

void Engine::reserve_workspaces() const {
  const MemoryPlan plan = plan_memory(options_);
  BRISK_RUN_ON_GPU(reserve_workspace, plan.workspace_bytes - plan.operand_bytes - kProductWorkspaceBytes);
  if (plan.operand_bytes > 0) BRISK_RUN_ON_GPU(reserve_operand_workspace, plan.operand_bytes);
}

void Engine::initialise(uint64_t seed) {
  store_.initialise(seed);
  parameters_changed();
}

void Engine::parameters_changed() {
  forget_ahead();
  refresh_compute_copies(store_);
}

StepResult Engine::train_step(const StepBatch& batch, int64_t step, double rate, Ledger& ledger,
                              const UpdateLimits& limits, const NextBatch& next) {
  if (gpu_) return train_on_gpu(batch, step, rate, ledger, limits, next);
  StepResult result;
  DeviceBatch device_batch;
  device_batch.loss_scale = 1.0f / static_cast<float>(batch.loss_divisor() > 0 ? batch.loss_divisor() : 1.0);
  device_batch.seed = options_.seed;
  device_batch.step = static_cast<uint64_t>(step);
  for (size_t i = 0; i < batch.micro_batches.size(); ++i) {
    {
      Ledger::Scope scope(ledger, Phase::copy);
      batch_buffer_.load(batch.micro_batches[i], device_batch.sets);
    }
    device_batch.first_of_step = i == 0;
    training_->program->forward(device_batch, ledger);
    training_->program->backward(device_batch, ledger);
    Ledger::Scope scope(ledger, Phase::copy);
    float sums[4] = {};
    device_.copy_out(sums, training_->program->value(training_->loss.sums, device_batch).data, sizeof(sums));
    result.loss_sum += sums[0];
    result.correct += std::lround(sums[1]);
    result.targets += std::lround(sums[2]);
    result.weight_sum += sums[3];
    result.tokens += batch.micro_batches[i].rows();
  }
  double scale = 1;
  {
    Ledger::Scope scope(ledger, Phase::clipping);
    result.gradient_norm = gradient_norm(store_);
    if (options_.max_grad_norm > 0 && result.gradient_norm > options_.max_grad_norm) {
      scale = options_.max_grad_norm / result.gradient_norm;
    }
  }
  result.updated = result.finite() && result.gradient_norm <= limits.gradient_norm && result.loss() <= limits.loss;
  if (result.updated) {
    Ledger::Scope scope(ledger, Phase::optimizer);
    adamw_step(store_, options_.adamw, step, rate, scale);
    if (muon_) muon_->step(rate, scale);
  }
  return result;
}

EvaluationResult Engine::evaluate(const Sequences& sequences, Ledger& ledger, int64_t count) {
  if (!evaluator_) {
    // On a GPU, where memory is what limits a batch, between steps and in their memory.
    evaluator_ =
        std::make_unique<Evaluator>(*model_, store_, options_.capacity, options_.layout, options_.backend,
                                    options_.products == ProductFormat::tf32 ? options_.products : ProductFormat::own,
                                    gpu_ ? training_->program.get() : nullptr);
  }
  return evaluator_->evaluate(sequences, ledger, count);
}

std::string Engine::first_not_finite() const {
  const std::string parameter = brisk::first_not_finite(store_, false);
  return parameter.empty() ? brisk::first_not_finite(store_, true) : parameter;
}

}  // namespace brisk
