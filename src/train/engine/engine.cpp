#include "train/engine/engine.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "comm/communicator.h"
#include "infer/forward/batch_buffer.h"
#include "ops/backend.h"
#include "ops/cpu/cpu_workspace.h"
#include "ops/optimizer/parameters.h"
#include "ops/tape/gpu_workspace.h"
#include "optim/shards.h"
#include "train/engine/shard_transport.h"
#include "train/engine/shared_evaluation.h"

namespace brisk {

LossOptions EngineOptions::loss() const {
  return {
      .label_smoothing = label_smoothing, .soft_weight = distillation.weight, .temperature = distillation.temperature};
}

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

TrainingProgram program_of(const Model& model, const EngineOptions& options, Tape::Purpose purpose) {
  const bool training = purpose == Tape::Purpose::training;
  return {model,
          {.purpose = purpose,
           .activation_type = options.compute_type,
           .rows = options.row_sets(),
           .products = options.products},
          options.loss(),
          {.checkpoint_every = training ? options.checkpoint_every : 0,
           .backend = options.backend,
           .products = options.products}};
}
// On a GPU matrices of one shape are orthogonalised together, and how many decides which algorithm multiplies them. Where bits
// must not depend on the number of ranks, they are those of one part of the step.
int64_t optimizers_of_rank(const EngineOptions& options, int64_t own_parts) {
  return options.backend == Backend::cuda && options.muon && options.parts > 0 ? own_parts : 1;
}
// What BRISK_BUCKET_BYTES says; without it, `otherwise`.
int64_t bucket_bytes_or(int64_t otherwise) {
  const std::string_view given = Runtime::current().environment("BRISK_BUCKET_BYTES");
  if (given.empty()) return otherwise;
  int64_t bytes = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), bytes);
  if (error != std::errc() || end != given.data() + given.size() || bytes < 0)
    user_error("BRISK_BUCKET_BYTES is \"{}\", expected a number of bytes; 0: no buckets", given);
  return bytes;
}

// Elements of the gradient that leave at once while backward goes on; 0: all of them afterwards. Of ranks on CPUs, collective:
// all must cut at the same places, and the variable, or what an MPI allows, may be another on other machines.
int64_t bucket_of(const EngineOptions& options) {
  // Between GPUs, sums of our own move whole shards between all ranks at once; a bucket is often of one rank alone, whose link
  // the others would queue for. NCCL's go from rank to rank.
  if (options.process_group().gpus() != nullptr) {
    if (options.parts > 0) return 0;
    return (options.bucket_bytes >= 0 ? options.bucket_bytes : kGpuBucketBytes) / size_of(DType::f32);
  }
  Communicator* ranks = options.process_group().communicator();
  if (ranks == nullptr) return 0;
  int64_t bytes = bucket_bytes_or(options.bucket_bytes >= 0 ? options.bucket_bytes : ranks->background_bytes());
  if (!ranks->serves_any_thread()) bytes = 0;
  const std::vector<double> all = ranks->gather(static_cast<double>(bytes));
  return divide_up(static_cast<int64_t>(*std::min_element(all.begin(), all.end())), size_of(DType::f32));
}
}  // namespace

MemoryPlan plan_memory(const EngineOptions& asked) {
  const EngineOptions options = placed(asked);
  ParameterStore store;
  const std::unique_ptr<Model> model = make_model(options.model, store);
  const TrainingProgram training = program_of(*model, options, Tape::Purpose::training);
  const TrainingProgram evaluation = program_of(*model, options, Tape::Purpose::evaluation);
  const bool on_gpu = options.backend == Backend::cuda;
  MemoryPlan plan;
  plan.batch_bytes = BatchBuffer::bytes(training.tape);
  plan.loss_bytes = training.program.loss_scratch_bytes();
  const auto workspace = on_gpu ? gpu_workspace_bytes : cpu_workspace_bytes;
  plan.workspace_bytes = std::max(workspace(training.tape), workspace(evaluation.tape));
  if (on_gpu) {
    plan.batch_bytes += 2 * BatchBuffer::column_bytes(options.row_sets());  // two more are on their way
    plan.library_bytes = gpu_cudnn_bytes(training.tape);
  }
  if (options.products == GemmFormat::fp8) plan.operand_bytes = gpu_operand_bytes(training.tape);
  plan.parameters = store.count();
  plan.trained_parameters = store.trained_count();
  plan.state = store.byte_parts(options.compute_type, ParameterStore::Purpose::training, moments_of(options),
                                masters_of(options));
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(store, options.adamw, options.muon);
  plan.optimizer_bytes = optimizer->workspace_bytes(on_gpu) *
                         optimizers_of_rank(options, options.parts_of_step() / options.process_group().size());
  plan.saved_bytes = store.trained_count() * size_of(DType::f32) + optimizer->state_bytes();
  const int64_t processes = options.process_group().size(), parts = options.parts_of_step() / processes;
  plan.state.gradients += GradientExchange::part_bytes(store.trained_count(), parts);
  if (options.process_group().gpus() != nullptr && options.parts > 0)
    plan.state.gradients += nccl_sum_bytes(divide_up(store.trained_count(), processes), processes);
  plan.state.moments = divide_up(plan.state.moments, processes);
  plan.state_bytes = plan.state.total() + plan.optimizer_bytes;
  const int64_t arena = training.program.arena_bytes(), evaluation_arena = evaluation.program.arena_bytes();
  plan.activation_bytes = arena + plan.batch_bytes;
  plan.evaluation_bytes = on_gpu && evaluation_arena <= arena ? 0 : evaluation_arena;
  plan.library_bytes = std::max<int64_t>(0, plan.library_bytes - plan.workspace_bytes);
  if (on_gpu) plan.workspace_bytes += kGemmWorkspaceBytes + plan.operand_bytes;
  return plan;
}

Engine::Engine(const EngineOptions& options)
    : options_(placed(options)),
      device_(options.device != nullptr ? *options.device : cpu_device()),
      model_(make_model(options.model, store_)),
      training_(program_of(*model_, options_, Tape::Purpose::training)) {
  BRISK_CHECK((options.compute_type != DType::f16 && options.master_weights) || device_.is_cuda(),
              "a GPU's on the CPU");
  store_.allocate(device_, training_.program.completion_order(), options.compute_type,
                  ParameterStore::Purpose::training, moments_of(options), masters_of(options), false);
  ProcessGroup& processes = options_.process_group();
  const int64_t parts = options_.parts_of_step(), own_parts = parts / processes.size();
  const std::vector<int64_t> shards = shard_bounds(store_, options_.muon.has_value(), parts);
  const auto own = static_cast<size_t>(processes.rank() * own_parts);
  store_.allocate_moments(shards[own], shards[own + static_cast<size_t>(own_parts)]);
  const int64_t optimizers = optimizers_of_rank(options_, own_parts);
  std::vector<std::unique_ptr<Optimizer>> of_shards;
  for (int64_t i = 0; i < optimizers; ++i) {
    const auto begin = own + static_cast<size_t>(i * own_parts / optimizers);
    const auto end = own + static_cast<size_t>((i + 1) * own_parts / optimizers);
    of_shards.push_back(make_optimizer(store_, options_.adamw, options_.muon, shards[begin], shards[end]));
  }
  if (optimizers == 1) {
    optimizer_ = std::move(of_shards.front());
  } else {
    optimizer_ = std::make_unique<OptimizerList>(std::move(of_shards));
  }
  training_.program.allocate(device_);
  if (device_.is_cuda()) reserve_workspaces();
  Nccl* const gpus = processes.gpus();
  backend_ = device_.is_cuda() ? make_gpu_backend(device_, training_, gpus) : make_cpu_backend(device_, training_);
  std::vector<int64_t> shards_of_ranks;
  for (size_t i = 0; i < shards.size(); i += static_cast<size_t>(own_parts)) shards_of_ranks.push_back(shards[i]);
  const int64_t bucket = bucket_of(options_);
  std::unique_ptr<ShardTransport> transport;
  if (gpus != nullptr) {
    transport = make_nccl_transport(store_, backend_->state(), *gpus, std::move(shards_of_ranks), options_.parts > 0);
  } else if (processes.size() > 1) {
    transport = make_cpu_transport(store_, processes, std::move(shards_of_ranks), bucket > 0);
  }
  step_ = std::make_unique<TrainingStep>(
      *backend_, store_, *optimizer_, processes, std::move(transport),
      TrainingStep::Options{.max_grad_norm = options_.max_grad_norm,
                            .seed = options_.seed,
                            .scales_loss = options_.compute_type == DType::f16,
                            .exchange = {.parts = parts, .has_muon = options_.muon.has_value(), .bucket = bucket},
                            .gradient_ready = options_.gradient_ready});
}

Engine::~Engine() {
  try {
    step_->cancel_next_pass();
  } catch (const std::exception&) {  // a GPU that failed has said so before
  }
}

void Engine::reserve_workspaces() const {
  const MemoryPlan plan = plan_memory(options_);
  BRISK_RUN_ON_GPU(reserve_workspace, plan.workspace_bytes - plan.operand_bytes - kGemmWorkspaceBytes);
  if (plan.operand_bytes > 0) BRISK_RUN_ON_GPU(reserve_operand_workspace, plan.operand_bytes);
}

void Engine::initialise(uint64_t seed) {
  store_.initialise(seed);
  parameters_changed();
}

void Engine::parameters_changed() {
  step_->cancel_next_pass();
  refresh_compute_copies(store_);
}

StepResult Engine::train_step(const StepBatch& batch, int64_t step, double rate, Ledger& ledger,
                              const UpdateLimits& limits, const NextBatch& next) {
  return step_->run(batch, step, rate, ledger, limits, next);
}

EvaluationResult Engine::evaluate(const Sequences& sequences, Ledger& ledger, int64_t count) {
  if (!evaluator_) {
    // On a GPU, where memory is what limits a batch, between steps and in their memory.
    evaluator_ = options_.make_evaluator(
        {.model = *model_,
         .store = store_,
         .capacity = options_.capacity,
         .layout = options_.layout,
         .backend = options_.backend,
         .products = options_.products == GemmFormat::tf32 ? options_.products : GemmFormat::own,
         .shared_with = device_.is_cuda() ? &training_.program : nullptr});
  }
  const int64_t parts = options_.parts_of_step();
  if (parts == 1) return evaluator_->evaluate(sequences, ledger, count);
  return evaluate_in_parts(*evaluator_, sequences, ledger, std::min(count, sequences.count()), parts,
                           options_.process_group());
}

std::string Engine::first_not_finite() const {
  const std::string parameter = brisk::first_not_finite(store_, false);
  return parameter.empty() ? brisk::first_not_finite(store_, true) : parameter;
}

}  // namespace brisk
