#include <span>
#include <utility>

#include "base/error.h"
#include "base/rounding.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_cudnn_limits.h"
#include "ops/backend.h"
#include "ops/cpu/cpu_workspace.h"
#include "ops/rows/rows_copy.h"
#include "ops/tape/gpu_workspace.h"
#include "ops/tape/tape_ops.h"
#include "ops/tape/tape_record.h"

namespace brisk {

namespace {

class AttentionOp final : public OverwritingOp {
 public:
  // Inputs: qkv, or q and kv; then the bias if there is one. Outputs: y, then the entropy if it is asked for, then (training) the log-sum-exp.
  // `cache_slot` is its place in a cache.
  AttentionOp(int query_set, int key_set, bool cross, const AttentionShape& shape, DropoutSite dropout, bool training,
              bool has_entropy, bool has_bias, size_t cache_slot)
      : query_set_(query_set),
        key_set_(key_set),
        cross_(cross),
        shape_(shape),
        dropout_(dropout),
        training_(training),
        has_entropy_(has_entropy),
        has_bias_(has_bias),
        cache_slot_(cache_slot) {}
  OpFamily family() const override { return OpFamily::attention; }
  std::string name() const override { return cross_ ? "cross_attention" : "self_attention"; }
  // dq, dk and dv come out of one kernel, and so does the bias's gradient.
  bool writes_every_gradient() const override { return cross_ || has_bias_; }
  void forward(OpRun& run) const override {
    AttentionForward op = arguments(run);
    if (run.batch().cache != nullptr && !cross_) {
      const KeyValueCache& cache = *run.batch().cache;
      const Tensor keys = cache.keys.at(cache_slot_), values = cache.values.at(cache_slot_);
      BRISK_RUN_OP(run, append_to_cache, op.k, run.set(key_set_).rows, cache.begin, keys);
      BRISK_RUN_OP(run, append_to_cache, op.v, run.set(key_set_).rows, cache.begin, values);
      op.k = keys;
      op.v = values;
      op.k_begin = cache.begin;
      op.k_end = cache.end;
      op.longest_keys = cache.longest;
    }
    BRISK_RUN_OP(run, attention_forward, op);
  }
  void backward(OpRun& run) const override {
    AttentionBackward op;
    op.forward = arguments(run);
    op.dy = run.output_gradient(0);
    if (has_entropy_) op.dentropy = run.output_gradient(1);
    const int64_t q_cols = shape_.heads * shape_.head_width, kv_cols = shape_.kv_heads * shape_.head_width;
    const Tensor dq = run.input_gradient(0);
    op.dq = dq.columns(0, q_cols);
    const Tensor dkv = cross_ ? run.input_gradient(1) : dq;
    const int64_t first = cross_ ? 0 : q_cols;
    op.dk = dkv.columns(first, kv_cols);
    op.dv = dkv.columns(first + kv_cols, kv_cols);
    if (has_bias_) {
      op.dbias = run.input_gradient(1);
      op.dbias_parts = run.scratch(DType::f32, shape_.heads, op.forward.q.rows + op.forward.k.rows);
    }
    if (hides_padding(run)) BRISK_RUN_OP(run, clear_rows, dkv.columns(first, 2 * kv_cols));
    BRISK_RUN_OP(run, attention_backward, op);
  }
  // Two products with the keys that a query sees, of which a causal one sees half; backward, four.
  OpCost cost(const Tape& tape, const Node& node, std::span<const RowMeans> sets) const override {
    const double keys = sets[static_cast<size_t>(key_set_)].attended * (shape_.causal ? 0.5 : 1.0);
    const double scores = rows_of_a_sequence(tape, node.outputs[0], sets) * keys * static_cast<double>(shape_.heads);
    const double forward = 4 * scores * static_cast<double>(shape_.head_width);
    return {.forward = forward, .backward = 2 * forward};
  }
  GpuWorkspace gpu_workspace(const Tape& tape, const Node& node) const override {
    // The gradient of the queries in f32, and two numbers for each row and head.
    constexpr int64_t kOfCudnn = int64_t{8} << 20;  // what its plans ask for besides, where cuDNN computes it
    const int64_t rows = tape.capacity_rows(node.outputs[0]), queries = rows * tape.spec(node.outputs[0]).cols;
    const int64_t numbers = workspace_piece(rows * shape_.heads * size_of(DType::f32));
    const int64_t gradient = workspace_piece(queries * size_of(DType::f32));
    const int64_t shared =
        gradient + 2 * std::max(numbers, workspace_piece(divide_up(queries, 8) * size_of(DType::f32))) + kOfCudnn;
    if (cross_ || has_entropy_ || has_bias_ || !training_ || dropout_.probability > 0) return {.shared = shared};

    // Backward by cuDNN with the same bits every time: the gradient of the queries in f32 once for every 128 keys, which
    // are then added in order (9.14 on an H200: 784 MiB of GPT-2's 32 x 1024, and 800 by this). Where it is too much,
    // ours.
    constexpr int64_t kKeysOfABlock = 128;
    const int64_t longest = tape.rows(query_set_).longest;
    const int64_t gradients = gradient * divide_up(longest, kKeysOfABlock);
    const bool suits = size_of(tape.activation_type()) == 2 && may_suit_cudnn(shape_.head_width, longest);
    return {.shared = shared, .cudnn = suits && gradients <= kMostCudnnBytes ? shared - gradient + gradients : 0};
  }
  int64_t cpu_workspace(const Tape& tape, const Node&) const override {
    return cpu::attention_workspace_bytes(shape_, has_entropy_, has_bias_, tape.activation_type(),
                                          tape.rows(query_set_).longest, tape.rows(key_set_).longest);
  }

 private:
  AttentionForward arguments(OpRun& run) const {
    const int64_t q_cols = shape_.heads * shape_.head_width, kv_cols = shape_.kv_heads * shape_.head_width;
    AttentionForward op;
    op.shape = shape_;
    op.q = run.input(0).columns(0, q_cols);
    const Tensor kv = cross_ ? run.input(1) : run.input(0);
    const int64_t first = cross_ ? 0 : q_cols;
    op.k = kv.columns(first, kv_cols);
    op.v = kv.columns(first + kv_cols, kv_cols);
    op.queries = run.set(query_set_).rows;
    const RowSet& keys = run.set(key_set_).rows;
    op.k_begin = keys.starts;
    op.k_end = hides_padding(run) ? run.set(key_set_).real_ends : keys.starts + 1;
    op.longest_keys = keys.longest;
    op.dropout = dropout_.at(run.batch());
    if (has_bias_) op.bias = run.input(1);
    op.y = run.output(0);
    if (has_entropy_) op.entropy = run.output(1);
    if (training_) op.log_sum_exp = run.output(has_entropy_ ? 2 : 1);
    return op;
  }
  // A causal row sees none of the padding, which comes after it.
  bool hides_padding(const OpRun& run) const { return !shape_.causal && run.set(key_set_).real_ends != nullptr; }
  int query_set_, key_set_;
  bool cross_;
  AttentionShape shape_;
  DropoutSite dropout_;
  bool training_, has_entropy_, has_bias_;
  size_t cache_slot_;
};

// Of queries against what a KeyValueCache holds of other texts.
class MemoryAttentionOp final : public Op {
 public:
  MemoryAttentionOp(int row_set, const AttentionShape& shape, int64_t layer, int64_t longest)
      : row_set_(row_set), shape_(shape), layer_(layer), longest_(longest) {}
  OpFamily family() const override { return OpFamily::attention; }
  std::string name() const override { return "memory_attention"; }
  void forward(OpRun& run) const override {
    const KeyValueCache* cache = run.batch().cache;
    BRISK_CHECK(cache != nullptr && cache->memory, "attention to a memory that is not there");
    const int64_t kv_cols = shape_.kv_heads * shape_.head_width;
    AttentionForward op;
    op.shape = shape_;
    op.q = run.input(0);
    op.k = cache->memory.columns(2 * layer_ * kv_cols, kv_cols);
    op.v = cache->memory.columns((2 * layer_ + 1) * kv_cols, kv_cols);
    op.queries = run.set(row_set_).rows;
    op.k_begin = cache->memory_begin;
    op.k_end = cache->memory_end;
    op.longest_keys = cache->longest_memory;
    op.y = run.output(0);
    BRISK_RUN_OP(run, attention_forward, op);
  }
  void backward(OpRun&) const override { BRISK_CHECK(false, "a memory is read, not trained"); }
  GpuWorkspace gpu_workspace(const Tape& tape, const Node& node) const override {
    const int64_t rows = tape.capacity_rows(node.outputs[0]);
    return {.shared = workspace_piece(rows * tape.spec(node.outputs[0]).cols * size_of(DType::f32))};
  }
  int64_t cpu_workspace(const Tape& tape, const Node&) const override {
    return cpu::attention_workspace_bytes(shape_, false, false, tape.activation_type(), tape.rows(row_set_).longest,
                                          longest_);
  }

 private:
  int row_set_;
  AttentionShape shape_;
  int64_t layer_, longest_;
};

AttentionWithEntropy record_attention(Tape& tape, Value q, Value kv, bool cross, bool has_entropy,
                                      const AttentionShape& shape, double dropout, Value bias = {}) {
  const bool has_bias = static_cast<bool>(bias);
  BRISK_CHECK(!has_bias || (!cross && !has_entropy && shape.heads == shape.kv_heads), "attention that has no bias");
  const int64_t width = shape.heads * shape.head_width;
  const Value y = make_value(tape, q, width, tape.activation_type(), true);
  const Value entropy = has_entropy ? make_value(tape, q, 1, DType::f32, true) : Value{};
  const size_t cache_slot = cross ? 0 : tape.next_cache_slot();
  Node node;
  node.op =
      std::make_unique<AttentionOp>(tape.spec(q).row_set, tape.spec(kv).row_set, cross, shape,
                                    DropoutSite(tape, dropout), tape.training(), has_entropy, has_bias, cache_slot);
  node.inputs = cross ? std::vector<Value>{q, kv} : std::vector<Value>{q};
  if (has_bias) {
    node.inputs.push_back(bias);
    node.backward_scratch = 2 * tape.capacity_rows(q) * shape.heads * size_of(DType::f32);
  }
  node.outputs = {y};
  if (has_entropy) node.outputs.push_back(entropy);
  if (tape.training()) node.outputs.push_back(make_value(tape, q, shape.heads, DType::f32, false));
  node.input_in_backward.assign(node.inputs.size(), true);
  node.output_in_backward.assign(node.outputs.size(), true);
  if (has_entropy) node.output_in_backward[1] = false;
  tape.record(std::move(node));
  return {y, entropy};
}

}  // namespace

Value self_attention(Tape& tape, Value qkv, const AttentionShape& shape, double dropout, Value bias) {
  return record_attention(tape, qkv, qkv, false, false, shape, dropout, bias).y;
}

AttentionWithEntropy self_attention_with_entropy(Tape& tape, Value qkv, const AttentionShape& shape, double dropout) {
  return record_attention(tape, qkv, qkv, false, true, shape, dropout);
}

Value cross_attention(Tape& tape, Value q, Value kv, const AttentionShape& shape, double dropout) {
  return record_attention(tape, q, kv, true, false, shape, dropout).y;
}

Value memory_attention(Tape& tape, Value q, const AttentionShape& shape, int64_t layer, int64_t longest) {
  BRISK_CHECK(!tape.training() && !shape.causal, "a memory is read while generating, and all of it");
  const Value y = make_value(tape, q, shape.heads * shape.head_width, tape.activation_type(), false);
  Node node;
  node.op = std::make_unique<MemoryAttentionOp>(tape.spec(q).row_set, shape, layer, longest);
  node.inputs = {q};
  node.outputs = {y};
  tape.record(std::move(node));
  return y;
}

}  // namespace brisk
