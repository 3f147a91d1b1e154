// The engine: a model with its parameters, its planned programs and its optimizer. It knows steps, not tasks, files or
// terminals; `brisk train`, `brisk bench` and the tests all run it.
//
//   Engine engine({.model = DecoderConfig{...}, .capacity = {4096, 4096, 128}, .compute_type = DType::f32});
//   engine.initialise(seed);
//   StepResult result = engine.train_step(loader.next(), step, rate, ledger);
//   EvaluationResult quality = engine.evaluate(sequences, ledger);
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "checkpoint/checkpoint_tensors.h"
#include "data/batch/batch.h"
#include "data/batch/sequences.h"
#include "infer/forward/batch_layout.h"
#include "infer/forward/evaluator.h"
#include "models/model_config.h"
#include "optim/adamw.h"
#include "optim/loss_scale.h"
#include "optim/muon.h"
#include "optim/optimizer.h"
#include "tensor/program.h"
#include "train/engine/process_group.h"
#include "train/engine/step_backend.h"
#include "train/engine/training_program.h"
#include "train/engine/training_step.h"

namespace brisk {

// Of GPUs: some hundred microseconds of a fast link, a few times what an operation costs by itself.
constexpr int64_t kGpuBucketBytes = int64_t{32} << 20;

struct EngineOptions {
  ModelConfig model;
  RowCapacity capacity;                   // of a micro-batch, of its first row set
  BatchLayout layout;                     // which others it has
  DType compute_type = DType::f32;        // f32, bf16 or, on a GPU, f16 products
  GemmFormat products = GemmFormat::own;  // while training; fp8 is not evaluated in: what is saved is not fp8
  bool master_weights = true;             // false: ParameterStore::Masters::not_of_hidden
  int64_t checkpoint_every = 0;
  double label_smoothing = 0;
  struct Distillation {
    double weight = 0;  // of what a teacher says, in the loss (LinearCrossEntropy::soft_weight); 0: there is none
    double temperature = 1;
  } distillation;
  AdamWOptions adamw;
  std::optional<MuonOptions> muon;  // of the hidden matrices; none: AdamW updates them too
  double max_grad_norm = 1;         // 0: no clipping
  uint64_t seed = 1;
  Backend backend = Backend::cpu;     // of a GPU: always cuda
  Device* device = nullptr;           // none: the CPU
  ProcessGroup* processes = nullptr;  // that train this model together; none: this one alone
  // Of a step, which are summed apart (train/engine/gradient_exchange.h); 0: one for each process.
  int64_t parts = 0;
  // Of the gradient that ranks exchange at once while backward goes on; 0: all of it, after backward. -1: what is fastest
  // with their transport.
  int64_t bucket_bytes = -1;
  // Hears of every trained parameter once a step, when this process's gradient is complete (Program::backward): not where
  // its last part has no sequences.
  GradientReady gradient_ready;
  MakeEvaluator make_evaluator = make_token_evaluator;  // what evaluate() measures

  LossOptions loss() const;
  std::vector<RowCapacity> row_sets() const { return layout.capacities(capacity); }
  ProcessGroup& process_group() const { return processes != nullptr ? *processes : single_process(); }
  int64_t parts_of_step() const { return parts > 0 ? parts : process_group().size(); }
};

// What an engine with these options will take, before anything is allocated.
struct MemoryPlan {
  int64_t parameters = 0;  // number
  int64_t trained_parameters = 0;
  int64_t state_bytes = 0;       // masters, gradients, moments, copies, the optimizer's workspace
  int64_t activation_bytes = 0;  // the training arena and the batch
  int64_t evaluation_bytes = 0;  // its arena; none on a GPU, where it fits into that of training
  int64_t workspace_bytes = 0;   // of products and other ops, in addition to the arenas
  int64_t library_bytes = 0;     // on a GPU, not in the total: what cuDNN takes if memory allows
  int64_t saved_bytes = 0;       // not in the total, of a checkpoint on disk: trained parameters and their moments
  // Not in the total, in the host's memory: a copy of what is saved, so that training need not wait. 0: there is no room.
  int64_t copy_bytes = 0;
  int64_t total() const { return state_bytes + activation_bytes + evaluation_bytes + workspace_bytes; }

  // What these are made of.
  ParameterStore::Bytes state;
  int64_t optimizer_bytes = 0;  // its workspace
  int64_t operand_bytes = 0;    // of workspace_bytes: operands of eight bits
  int64_t batch_bytes = 0;
  int64_t loss_bytes = 0;  // of the arena: logits of a chunk of rows
};
MemoryPlan plan_memory(const EngineOptions& options);

class Engine {
 public:
  explicit Engine(const EngineOptions& options);
  ~Engine();

  void initialise(uint64_t seed);
  // After masters were written from outside (a checkpoint, an import).
  void parameters_changed();

  // One optimizer step (number `step`, from 1): every micro-batch forward and backward, then clipping and the update.
  // When the result is not finite(), or above `limits`, the parameters and the optimizer's state are untouched.
  // A GPU asks for `next` when it has this step before it, and begins with that one's gradients, so that it has work
  // while the host looks at this step's numbers. The next call must then be of that batch and with the same ledger,
  // unless parameters_changed() comes before. The gradient that lies in the store may be either one's; where this
  // step's is wanted, give no `next`.
  StepResult train_step(const StepBatch& batch, int64_t step, double rate, Ledger& ledger,
                        const UpdateLimits& limits = {}, const NextBatch& next = {});

  // Of the first `count` sequences, or of all.
  EvaluationResult evaluate(const Sequences& sequences, Ledger& ledger,
                            int64_t count = std::numeric_limits<int64_t>::max());

  // How many passes in a row, the last ones queued, were of sizes that had come twice before: nothing was chosen
  // by timing and no graph recorded. The CPU prepares nothing: without end.
  int64_t settled_passes() const { return backend_->settled_passes(); }

  // Of a GPU, for a stretch of steps: how long it was busy and with how many kernels (train/engine/step_backend.h).
  void watch_gpu() { backend_->watch_gpu(); }
  GpuWork gpu_work() { return backend_->gpu_work(); }

  // Micro-batches that training ran forward so far; those of a recorded graph that is replayed are not counted.
  int64_t forward_passes() const { return training_.program.forward_passes(); }

  ParameterStore& parameters() { return store_; }
  const ParameterStore& parameters() const { return store_; }
  const Model& model() const { return *model_; }
  const EngineOptions& options() const { return options_; }
  LossScale* loss_scale() { return step_->loss_scale(); }  // of f16; null: there is none
  const LossScale* loss_scale() const { return step_->loss_scale(); }
  // To the first process: the gradient of the last step. Collective.
  void collect_gradient() { step_->exchange().collect_gradient(); }
  // Masters are those of the last step on all ranks only after this, where products read rounded copies. Collective.
  void share_masters() { step_->exchange().share_masters(); }
  // Of several ranks, so far.
  CommunicationTotals communication() const { return step_->exchange().communication(); }
  // What this process updates, and has the moments of.
  FlatRange own_range() { return {step_->exchange().begin(), step_->exchange().end()}; }

  // The tensor to name when a step was not finite.
  std::string first_not_finite() const;

 private:
  void reserve_workspaces() const;

  EngineOptions options_;
  Device& device_;
  ParameterStore store_;
  std::unique_ptr<Model> model_;
  TrainingProgram training_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<StepBackend> backend_;
  std::unique_ptr<TrainingStep> step_;
  std::unique_ptr<Evaluator> evaluator_;  // made at the first evaluate()
};

}  // namespace brisk
