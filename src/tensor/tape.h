// The tape: a model runs once on shapes alone and records ops; a Program (tensor/program.h) plans their memory and runs
// them, forward and backward, as often as there are micro-batches. Model code is an ordinary function over Values:
//
//   Tape tape({.purpose = Tape::Purpose::training, .activation_type = DType::f32, .rows = {{.rows = 4096, ...}}});
//   Value h = embedding(tape, 0, table, {.positions = p});   // ops/tape/tape_ops.h
//   tape.end_layer();
//   h = linear(tape, h, weight, {.residual = h});
//
// Why record once instead of running eagerly every step: the plan needs every lifetime before the first step anyway
// (the arena is sized, and refused, up front), a replay costs no allocation and no hashing, and a captured CUDA graph
// is the same thing. The price: a model cannot branch on values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "tensor/parameter.h"
#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

class OpRun;
class Tape;
struct Node;
struct PreparedGradient;  // ops/norm/norm.h

// GPU memory that an op uses outside of the arena, in bytes at the tape's capacity (ops/tape/gpu_workspace.h).
struct GpuWorkspace {
  int64_t shared = 0;    // of the workspace that all ops use in turn
  int64_t cudnn = 0;     // what that grows to where cuDNN's kernels are tried; 0: never
  int64_t operands = 0;  // of the workspace for the fp8 operands of matrix products
};

// FLOP of an op's matrix products for one sequence: 2 for each multiplication and addition. What is computed row by
// row, or a second time, counts as nothing: these are the FLOP that utilisation is measured by (docs/architecture.md).
struct OpCost {
  double forward = 0;
  double backward = 0;            // whatever gradient is wanted
  double input_gradient = 0;      // where that of input 0 is
  double parameter_gradient = 0;  // where parameter 0 is trained
};

// One recorded op: what it does when it is run, and all that others need to know about it.
class Op {
 public:
  virtual ~Op() = default;
  virtual OpFamily family() const = 0;
  virtual std::string name() const = 0;
  virtual void forward(OpRun& run) const = 0;
  // A loss computes itself and its gradients here: while training its forward is not run.
  virtual void backward(OpRun& run) const = 0;

  // `sets`: what each row set of the tape is like. An op without matrix products costs nothing.
  virtual OpCost cost(const Tape& tape, const Node& node, std::span<const RowMeans> sets) const;

  virtual GpuWorkspace gpu_workspace(const Tape& tape, const Node& node) const;
  // Bytes that it takes in addition to the arena on a CPU, in all threads together.
  virtual int64_t cpu_workspace(const Tape& tape, const Node& node) const;

  // The gradient of a value that several ops read is the sum of what each contributes. Most ops can add to what is
  // there (OpRun::input_gradient_adds); one that can only overwrite says so, and where it is not the first to
  // contribute, the program has it write to a buffer of its own and then add that to the sum.
  virtual bool overwrites_gradients() const { return false; }
  virtual void add_gradient(const OpRun& run, const Tensor& contribution, const Tensor& sum) const;
  // Does backward write the gradients of all inputs even where not all of them are wanted (because what made one is
  // frozen)? Then it is given memory for those as well.
  virtual bool writes_every_gradient() const { return false; }

  // Fusions with a neighbour on the tape, on GPUs alone. Ops offer them, the program applies them where both offer.
  //
  // GELU's slope in a matrix product's epilogue: if output 0 is the tanh GELU of the output gelu_argument() and nothing
  // else, and the only op that reads output 0 can multiply the gradient of its input 0 by GELU's slope as it writes it,
  // then that op does, and the backward of this one starts from the gradient before the activation.
  virtual int gelu_argument() const { return -1; }
  virtual bool applies_gelu_slope() const { return false; }
  // A gradient prepared for matrix products: the backward of a norm can write, besides dx, a copy of dx in the type of
  // the products, with the dropout of the linear layer that produced x applied, so that the layer's backward, which
  // runs next, needs no conversion pass of its own.
  virtual bool prepares_gradient() const { return false; }
  virtual bool wants_prepared_gradient(const Tape& tape, const Node& node) const;
  // What is wanted by the op of this run.
  virtual void describe_prepared_gradient(const OpRun& run, PreparedGradient& wanted) const;
};

struct Value {
  int id = -1;
  explicit operator bool() const { return id >= 0; }
};

struct ValueSpec {
  int row_set = 0;         // its rows are this row set's rows ...
  int64_t fixed_rows = 0;  // ... or, when > 0, this many
  int64_t cols = 0;
  DType type = DType::f32;
  bool gradient = false;   // takes part in backward
  bool read_back = false;  // read by the host after the run: its memory is not reused
};

struct ParameterPart {
  int64_t first = 0, count = 0;
};

struct Node {
  std::unique_ptr<Op> op;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  std::vector<Parameter*> parameters;
  // Where a node has to do with a part of its parameters alone, which others share: {first, count} of rows, or of
  // columns where there is one row. Empty: with all.
  std::vector<ParameterPart> parameter_parts;
  std::vector<bool> input_in_backward;  // does backward read this input, this output?
  std::vector<bool> output_in_backward;
  int64_t forward_scratch = 0;  // bytes at capacity
  int64_t backward_scratch = 0;
  int64_t gpu_forward_scratch = -1;  // on a GPU, where that differs
  int64_t gpu_backward_scratch = -1;
  int residual = -1;  // input whose gradient is the gradient of output 0, unchanged
  bool is_loss = false;
  int layer = 0;
};

// The most a micro-batch can hold of one row set.
struct RowCapacity {
  int64_t rows = 0;
  int64_t sequences = 0;
  int64_t longest = 0;
};

// Matrices that ops read of a micro-batch besides its tokens and targets, a row for each row of a row set: their
// columns; 0: none is read.
struct BatchMatrices {
  int64_t inputs = 0;        // of the tape's activation type, in place of tokens
  int64_t soft_targets = 0;  // f32
  int64_t pixels = 0;        // bytes
};

class Tape {
 public:
  enum class Purpose : uint8_t { training, evaluation };
  struct Options {
    Purpose purpose = Purpose::training;
    DType activation_type = DType::f32;  // what ops write between products; the residual stream is always f32
    std::vector<RowCapacity> rows;
    GemmFormat products = GemmFormat::own;  // ops that round further may keep what they rounded
  };

  explicit Tape(Options options) : options_(std::move(options)), matrices_(options_.rows.size()) {}

  bool training() const { return options_.purpose == Purpose::training; }
  DType activation_type() const { return options_.activation_type; }
  GemmFormat products() const { return options_.products; }
  const RowCapacity& rows(int set) const { return options_.rows.at(static_cast<size_t>(set)); }
  const std::vector<RowCapacity>& row_sets() const { return options_.rows; }

  // What the ops recorded so far read of a micro-batch; an op that reads a matrix says so here.
  BatchMatrices& matrices(int set) { return matrices_.at(static_cast<size_t>(set)); }
  const BatchMatrices& matrices(int set) const { return matrices_.at(static_cast<size_t>(set)); }

  Value add_value(const ValueSpec& spec);
  void read_back(Value value) { values_.at(static_cast<size_t>(value.id)).read_back = true; }  // by the host
  const ValueSpec& spec(Value value) const { return values_.at(static_cast<size_t>(value.id)); }
  int64_t capacity_rows(Value value) const;
  int64_t capacity_bytes(Value value) const;
  void record(Node node);

  // A layer ends here: activation checkpointing recomputes whole layers.
  void end_layer() { ++layer_; }
  int layers() const { return layer_; }
  uint64_t next_site() { return ++sites_; }  // numbers the places that draw at random
  // Numbers the attention ops that keep keys and values of earlier positions (KeyValueCache).
  size_t next_cache_slot() { return cache_slots_++; }

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<ValueSpec>& values() const { return values_; }

 private:
  Options options_;
  std::vector<BatchMatrices> matrices_;  // per row set
  std::vector<Node> nodes_;
  std::vector<ValueSpec> values_;
  int layer_ = 0;
  uint64_t sites_ = 0;
  size_t cache_slots_ = 0;
};

}  // namespace brisk
