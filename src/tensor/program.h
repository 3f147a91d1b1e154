// A Program is a tape with its memory planned: every value, gradient and scratch has a fixed offset in one arena, from
// lifetimes that include recomputation. Steady-state training allocates nothing, and the size is known before the first
// step. In addition to the arena, ops have workspaces that all ops of a thread, or of a GPU, use in turn: packed panels of
// matrix products, sums of each thread, scratch of attention. Op::cpu_workspace and Op::gpu_workspace say how large they
// become.
//
//   Program program(tape, {.checkpoint_every = 0});
//   program.allocate(cpu_device());                        // program.arena_bytes() said how much beforehand
//   program.forward(batch, ledger);
//   program.backward(batch, ledger);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "tensor/tape.h"

namespace brisk {

enum class Backend : uint8_t { reference, cpu, cuda };
inline Backend backend_of(const Device& device) { return device.is_cuda() ? Backend::cuda : Backend::cpu; }

// Keys and values of earlier positions, per layer, for generation. Sequence s owns rows [s * capacity, (s + 1) *
// capacity).
struct KeyValueCache {
  std::vector<Tensor> keys;  // per attention op: [S * capacity, kv_heads K]
  std::vector<Tensor> values;
  int64_t capacity = 0;
  const int32_t* begin = nullptr;  // [S]
  const int32_t* end = nullptr;    // [S]: after this run's rows are appended
  int64_t longest = 0;
  // What cross-attention reads: layer l's keys and values are columns [2 l W, 2 l W + W) and the next W. Sequence s sees rows
  // [memory_begin[s], memory_end[s]), which others may see, too.
  Tensor memory;                          // [rows, layers 2 W]
  const int32_t* memory_begin = nullptr;  // [S]
  const int32_t* memory_end = nullptr;    // [S]
  int64_t longest_memory = 0;
};

// One micro-batch as the device sees it.
struct DeviceBatch {
  struct Set {
    RowSet rows;
    const int32_t* tokens = nullptr;      // [N]
    const int32_t* targets = nullptr;     // [N], -1 = none
    const int32_t* types = nullptr;       // [N] token types, or none: all of type 0
    const float* weights = nullptr;       // [N] of the rows in the loss, or none: all 1
    const int32_t* source = nullptr;      // [N] the row of set 0 each was picked from; of picked sets alone
    const int32_t* real_ends = nullptr;   // [S] where padding begins, keys that no row may see; or none: there is none
    const void* inputs = nullptr;         // [N, BatchMatrices::inputs], where the tape reads them
    const float* soft_targets = nullptr;  // [N, BatchMatrices::soft_targets], likewise
    const uint8_t* pixels = nullptr;      // [N, BatchMatrices::pixels], likewise
  };
  std::vector<Set> sets;
  // On a GPU these may lie in device memory, so that a captured graph serves every step: then they count, and
  // loss_scale, seed and step mean nothing.
  const float* step_loss_scale = nullptr;
  const uint64_t* step_key = nullptr;  // random_key({seed, step})
  float loss_scale = 1;                // 1 / valid tokens (or their weights) of the whole optimizer step
  bool first_of_step = true;           // parameter gradients are overwritten, not added to
  uint64_t seed = 0;
  uint64_t step = 0;
  const KeyValueCache* cache = nullptr;
};

// What a device does, phase by phase, by its own clock.
class PhaseClock {
 public:
  explicit PhaseClock(Device& device) : clock_(device.clock()) { clock_->stamp(); }
  void stamp(Phase phase) {  // of what was queued since the last stamp
    phases_.push_back(phase);
    clock_->stamp();
  }
  void restart() {  // what came since the last stamp is nobody's
    phases_.push_back(Phase::count);
    clock_->stamp();
  }
  Ledger::Totals totals();  // waits

 private:
  std::unique_ptr<DeviceClock> clock_;
  std::vector<Phase> phases_;
};

struct ProgramOptions {
  int64_t checkpoint_every = 0;  // recompute the insides of every group of this many layers; 0 = keep everything
  Backend backend = Backend::cpu;
  GemmFormat products = GemmFormat::own;
};

// Is told of a parameter whose gradient is complete: what writes it has run or, on a GPU, is queued.
using GradientReady = std::function<void(Parameter&)>;

class Program {
 public:
  // The tape must outlive the program.
  Program(const Tape& tape, const ProgramOptions& options);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int64_t arena_bytes() const { return arena_bytes_; }
  int64_t loss_scratch_bytes() const;  // of the arena: where a loss makes logits
  void allocate(Device& device);
  // In the memory of another program, which must not be half done when this one runs; where that is too small, in its
  // own.
  void allocate_with(const Program& other);

  // Runs every op (while training: all but the loss), then the gradients.
  void forward(const DeviceBatch& batch, Ledger& ledger);
  // `ready` hears of every parameter of completion_order() in that order; give it with the step's last micro-batch,
  // after which nothing is added to a gradient.
  void backward(const DeviceBatch& batch, Ledger& ledger, const GradientReady& ready = {});

  // On a GPU ops are queued, and a ledger sees nothing of them; a clock gets a stamp after each. Null: none.
  void set_clock(PhaseClock* clock) { clock_ = clock; }

  // A value that is `read_back`, with the rows of the last batch.
  Tensor value(Value value, const DeviceBatch& batch) const;
  Tensor gradient(Value value, const DeviceBatch& batch) const;  // of a `read_back` value

  // FLOP of each node of the tape for one sequence: forward, and the gradients that are wanted while training.
  std::vector<double> flop(std::span<const RowMeans> sets) const;

  int64_t forward_passes() const { return forward_passes_; }  // that forward() ran or queued so far

  // Parameters in the order in which backward completes their gradients.
  const std::vector<Parameter*>& completion_order() const { return completion_order_; }
  const Tape& tape() const { return tape_; }

 private:
  friend class OpRun;
  enum class Pass : uint8_t { forward, recompute, backward };
  struct Step {
    int node = 0;
    Pass pass = Pass::forward;
    int64_t scratch_offset = -1;
    int64_t scratch_bytes = 0;
    int64_t prepared_offset = -1;  // of output 0's gradient as the step before prepared it (Op::prepares_gradient)
    int prepares_for = -1;         // the backward step that this one prepares the gradient of
  };

  void find_wanted_gradients();
  void fuse_gelu_slopes();
  void plan_gradients();
  void make_schedule();
  bool prepares(const Step& step, const Step& next) const;
  void plan_memory();
  void run(const Step& step, const DeviceBatch& batch, Ledger& ledger);

  const Tape& tape_;
  ProgramOptions options_;
  std::vector<Step> forward_steps_, backward_steps_;
  std::vector<bool> wants_gradient_;      // per value: a trained parameter lies below it
  std::vector<int> gelu_argument_;        // per value: x, if its gradient is multiplied by GELU'(x) when written; or -1
  std::vector<bool> recomputed_;          // per value: not kept from forward, made again for backward
  std::vector<int64_t> forward_offset_;   // per value
  std::vector<int64_t> backward_offset_;  // per value: the same, unless recomputed
  std::vector<int64_t> gradient_offset_;  // per value; -1 = none
  std::vector<int> gradient_owner_;       // per value: the value whose gradient buffer it shares (residual streams)
  // Per node and input: its gradient is added to; it is output 0's gradient, so there is nothing to write.
  std::vector<std::vector<bool>> input_gradient_adds_, input_gradient_shared_;
  // Per node and input: where backward writes a contribution that is then added to the gradient
  // (Op::overwrites_gradients), or that nobody wants (Op::writes_every_gradient); -1: it writes or adds to the gradient
  // itself.
  std::vector<std::vector<int64_t>> contribution_offset_;
  std::vector<std::vector<bool>>
      parameter_first_;              // per node and parameter: overwrites on the step's first micro-batch
  std::vector<bool> runs_backward_;  // per node
  std::vector<Parameter*> completion_order_;
  std::vector<int> completed_by_;  // per entry of completion_order_: the node that writes its gradient last
  int64_t arena_bytes_ = 0, forward_passes_ = 0;
  Buffer own_arena_;
  const Buffer* arena_ = &own_arena_;
  PhaseClock* clock_ = nullptr;
};

// What an op sees while it runs. Missing things are empty Tensors.
class OpRun {
 public:
  Tensor input(int i) const;
  Tensor output(int i) const;
  Tensor output_gradient(int i) const;
  Tensor input_gradient(int i) const;     // empty: nobody wants it, or it is shared with output 0's gradient
  bool input_gradient_adds(int i) const;  // to what is there, rather than overwriting it
  // If non-empty, backward must multiply the gradient of input 0 by GELU's slope at this. And: the gradient of output 0
  // already contains that factor (Op::gelu_argument).
  Tensor gelu_slope_at() const;
  bool output_gradient_has_gelu_slope() const;
  // The gradient of output 0 as the step before prepared it, or empty. And for that step: the run that it prepares the
  // gradient for (Op::prepares_gradient).
  Tensor prepared_gradient() const;
  std::optional<OpRun> prepares_for() const;
  const Op& op() const { return *node_.op; }
  Tensor master(int i) const { return node_.parameters[static_cast<size_t>(i)]->master; }
  Tensor compute(int i) const { return node_.parameters[static_cast<size_t>(i)]->compute; }
  Tensor copy(int i) const { return node_.parameters[static_cast<size_t>(i)]->copy; }
  Tensor parameter_gradient(int i) const { return node_.parameters[static_cast<size_t>(i)]->gradient; }
  bool parameter_gradient_adds(int i) const;
  Tensor scratch(DType type, int64_t rows, int64_t cols) const;  // the node's scratch seen as this matrix
  int64_t scratch_bytes() const { return step_.scratch_bytes; }
  const DeviceBatch::Set& set(int i) const { return batch_.sets[static_cast<size_t>(i)]; }
  const DeviceBatch& batch() const { return batch_; }
  Backend backend() const { return program_.options_.backend; }
  GemmFormat products() const { return program_.options_.products; }

 private:
  friend class Program;
  OpRun(const Program& program, const Node& node, const Program::Step& step, const DeviceBatch& batch)
      : program_(program), node_(node), step_(step), batch_(batch) {}
  size_t node_index() const { return static_cast<size_t>(step_.node); }
  Tensor shared_gradient(int i) const;  // of input i: the sum of what all its readers contribute

  const Program& program_;
  const Node& node_;
  const Program::Step& step_;
  const DeviceBatch& batch_;
};

}  // namespace brisk
