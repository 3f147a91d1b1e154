#include "ops/tape/gpu_workspace.h"

#include <algorithm>

#include "base/rounding.h"
#include "ops/loss/linear_cross_entropy_hopper.h"

namespace brisk {

namespace {

// More blocks than any GPU brisk runs on has resident for one kernel (6 for each of up to 192 multiprocessors).
constexpr int64_t kMostParts = 1152;
constexpr int64_t kPieceAlignment = 256;

int64_t piece(int64_t bytes) { return round_up(bytes, kPieceAlignment); }

// What one op takes, forward or backward, from shapes and types alone.
class OpWorkspace {
 public:
  OpWorkspace(const Tape& tape, const Node& node) : tape_(tape), node_(node), type_(tape.activation_type()) {}

  // Backward: the gradient along rows and along columns, the input, and the weight; all of one byte.
  int64_t operand_bytes() const {
    if (node_.op->family() != OpFamily::linear || node_.inputs.empty() || node_.parameters.empty()) return 0;
    constexpr int64_t kPadding = 32;  // of rows and columns
    const int64_t rows = rows_of(node_.outputs[0]) + kPadding;
    const int64_t outputs = tape_.spec(node_.outputs[0]).cols + kPadding;
    const int64_t inputs = tape_.spec(node_.inputs[0]).cols + kPadding;
    return piece(2 * rows * outputs) + piece(rows * inputs) + piece(outputs * inputs) + 16 * kPieceAlignment;
  }

  // Backward by cuDNN with the same bits every time: the gradient of the queries in f32 once for every 128 keys, which
  // are then added in order (9.14 on an H200: 784 MiB of GPT-2's 32 x 1024, and 800 by this). Where it is too much,
  // ours.
  int64_t cudnn_bytes() const {
    constexpr int64_t kKeysOfABlock = 128;
    if (node_.op->name() != "self_attention" || node_.outputs.size() < 2 || node_.changes_product) return 0;
    const ValueSpec& y = tape_.spec(node_.outputs[0]);
    const int64_t heads = tape_.spec(node_.outputs[1]).cols, longest = tape_.rows(y.row_set).longest;
    if (size_of(type_) != 2 || !may_suit_cudnn(y.cols / heads, longest)) return 0;
    const int64_t once = piece(rows_of(node_.outputs[0]) * y.cols * size_of(DType::f32));
    const int64_t all = once * divide_up(longest, kKeysOfABlock);
    return all > kMostCudnnBytes ? 0 : attention() - once + all;
  }

  int64_t bytes() const {
    switch (node_.op->family()) {
      case OpFamily::linear: return linear();
      case OpFamily::attention: return attention();
      case OpFamily::norm: return kMostParts * 3 * widest() * size_of(DType::f32) + partial_sums(widest());
      case OpFamily::embedding: return embedding();
      case OpFamily::loss: return loss();
      case OpFamily::elementwise: return piece(rows() * 2 * size_of(DType::i32));  // rows that are picked
    }
    return 0;
  }

 private:
  int64_t rows_of(Value value) const {
    const ValueSpec& spec = tape_.spec(value);
    return spec.fixed_rows > 0 ? spec.fixed_rows : tape_.rows(spec.row_set).rows;
  }
  int64_t rows() const {
    int64_t most = 0;
    for (const Value value : node_.inputs) most = std::max(most, rows_of(value));
    for (const Value value : node_.outputs) most = std::max(most, rows_of(value));
    return most;
  }
  int64_t widest() const {
    int64_t most = 0;
    for (const Value value : node_.inputs) most = std::max(most, tape_.spec(value).cols);
    for (const Value value : node_.outputs) most = std::max(most, tape_.spec(value).cols);
    return most;
  }
  // A matrix that products cannot read as it is.
  int64_t converted(Value value) const {
    const ValueSpec& spec = tape_.spec(value);
    return spec.type == type_ ? 0 : piece(rows_of(value) * spec.cols * size_of(type_));
  }
  // Sums of a bias's gradient over chunks of rows (linear_partial_floats): a fixed number of blocks divides the matrix.
  static int64_t partial_sums(int64_t columns) {
    constexpr int64_t kBlocksWanted = 1024, kColumnsOfBlock = 256;
    return piece((columns + kBlocksWanted * kColumnsOfBlock) * size_of(DType::f32));
  }

  int64_t linear() const {
    if (node_.inputs.empty() || node_.outputs.empty()) return 0;
    const Value x = node_.inputs[0], y = node_.outputs[0];
    const int64_t result = piece(rows_of(y) * tape_.spec(y).cols * size_of(type_));
    const bool scaled = node_.changes_product;
    const bool keeps_result = node_.outputs.size() > 1;
    const int64_t bias = piece(tape_.spec(y).cols * size_of(type_));
    const int64_t forward = converted(x) + bias + (scaled && !keeps_result ? result : 0);
    const int64_t backward = converted(x) + (scaled ? 0 : converted(y)) + partial_sums(tape_.spec(y).cols);
    return std::max(forward, backward);
  }

  // The gradient of the queries in f32, and two numbers for each row and head.
  int64_t attention() const {
    constexpr int64_t kNarrowestHead = 8;
    constexpr int64_t kOfCudnn = int64_t{8} << 20;  // what its plans ask for besides, where cuDNN computes it
    const int64_t queries = rows_of(node_.outputs[0]) * tape_.spec(node_.outputs[0]).cols;
    return piece(queries * size_of(DType::f32)) + 2 * piece(divide_up(queries, kNarrowestHead) * size_of(DType::f32)) +
           kOfCudnn;
  }

  // Rows sorted by token, and sums of stretches of them.
  int64_t embedding() const {
    constexpr int64_t kShortestStretch = 8;
    return piece(divide_up(rows(), kShortestStretch) * 2 * widest() * size_of(DType::f32)) +
           8 * piece(rows() * size_of(DType::i32)) + (int64_t{1} << 20);
  }

  int64_t loss() const {
    if (node_.inputs.empty() || node_.parameters.empty()) return 0;
    const int64_t rows = rows_of(node_.inputs[0]), width = tape_.spec(node_.inputs[0]).cols;
    const int64_t exponentials = type_ != DType::bf16
                                     ? 0
                                     : piece(rows * width * size_of(type_)) + piece(rows * size_of(DType::f32)) +
                                           piece(cuda::exponentials_state_bytes(rows));
    return converted(node_.inputs[0]) + partial_sums(node_.parameters[0]->spec.rows) + exponentials;
  }

  const Tape& tape_;
  const Node& node_;
  DType type_;
};

}  // namespace

int64_t gpu_workspace_bytes(const Tape& tape) {
  int64_t most = 0;
  for (const Node& node : tape.nodes()) most = std::max(most, OpWorkspace(tape, node).bytes());
  return round_up(most, int64_t{2} << 20);
}

int64_t gpu_cudnn_bytes(const Tape& tape) {
  int64_t most = 0;
  for (const Node& node : tape.nodes()) most = std::max(most, OpWorkspace(tape, node).cudnn_bytes());
  return round_up(most, int64_t{2} << 20);
}

int64_t gpu_operand_bytes(const Tape& tape) {
  int64_t most = 0;
  for (const Node& node : tape.nodes()) most = std::max(most, OpWorkspace(tape, node).operand_bytes());
  return round_up(most, int64_t{2} << 20);
}

}  // namespace brisk
