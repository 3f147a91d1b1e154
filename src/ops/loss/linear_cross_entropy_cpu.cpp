#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "ops/element.h"
#include "ops/gemm/gemm.h"
#include "ops/linear/linear_kernels.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/loss/linear_cross_entropy_kernels.h"

namespace brisk {

namespace {

// Each chunk of rows reads the weight twice and adds to its gradient once, so a chunk wants to be high; its logits are
// the largest temporary of a step, so not too high: at a vocabulary of 50,000, 256 rows were 7 % (fp32) and 15 % (bf16)
// slower than 512; at 10,000 there was no difference between 512 and 2048.
constexpr int64_t kChunkBytes = 104 << 20;
constexpr int64_t kFewestRows = 128, kMostRows = 1024;
// Without gradient the vocabulary is walked in blocks, and a block of logits stays in cache.
constexpr int64_t kBlockCols = 1024, kBlockRows = 1024;

// Floats from one row of logits to the next: whole lines, and never a multiple of 4 KiB, which would put a column of
// logits into one set of the first-level cache.
int64_t logits_stride(int64_t vocabulary) {
  const int64_t stride = round_up(vocabulary, 16);
  return stride % 1024 == 0 ? stride + 16 : stride;
}

int64_t rows_of_chunk(int64_t rows, int64_t vocabulary) {
  const int64_t most = std::clamp(kChunkBytes / (4 * logits_stride(vocabulary)), kFewestRows, kMostRows);
  const int64_t chunks = std::max<int64_t>(1, divide_up(rows, most));
  return round_up(std::max<int64_t>(1, divide_up(rows, chunks)), 32);
}

constexpr int64_t kStateFloats = sizeof(SoftmaxState) / 4 + 1;  // and the target's logit

}  // namespace

int64_t linear_cross_entropy_scratch(int64_t rows, int64_t, int64_t vocabulary, DType, bool gradient) {
  if (gradient) return rows_of_chunk(rows, vocabulary) * logits_stride(vocabulary) * 4;
  return std::min(kBlockRows, round_up(std::max<int64_t>(rows, 1), 32)) * (kBlockCols + kStateFloats) * 4;
}

namespace cpu {

namespace {

// Machines without vector kernels.
void plain_add(const float* logits, int64_t first, int64_t count, SoftmaxState& state) {
  float largest = state.largest;
  for (int64_t c = 0; c < count; ++c) {
    state.total += logits[c];
    if (logits[c] > largest) {
      largest = logits[c];
      state.argmax = static_cast<int32_t>(first + c);
    }
  }
  double sum = state.sum > 0 ? state.sum * std::exp(state.largest - largest) : 0;
  for (int64_t c = 0; c < count; ++c) sum += std::exp(logits[c] - largest);
  state.sum = static_cast<float>(sum);
  state.largest = largest;
}

SoftmaxState plain_gradient(float* logits, int64_t count, const SoftmaxGradient& gradient, bool to_16_bits) {
  SoftmaxState state;
  plain_add(logits, 0, count, state);
  for (int64_t c = 0; c < count; ++c) {
    float d = std::exp(logits[c] - state.largest) / state.sum * gradient.scale - gradient.everywhere;
    if (c == gradient.target) d -= gradient.less_at_target;
    if (to_16_bits) {
      reinterpret_cast<bf16_t*>(logits)[c] = to_bf16(d);
    } else {
      logits[c] = d;
    }
  }
  return state;
}

class Loss {
 public:
  explicit Loss(const LinearCrossEntropy& op)
      : op_(op),
        vocabulary_(op.weight.rows),
        arithmetic_(op.weight.type == DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32) {
    BRISK_CHECK(op.x.cols == op.weight.cols, "x [{}, {}], weight [{}, {}]", op.x.rows, op.x.cols, op.weight.rows,
                op.weight.cols);
  }

  // Chunks of rows: their logits, overwritten by their gradient, multiplied into both gradients.
  void with_gradient() {
    const int64_t stride = logits_stride(vocabulary_), width = op_.x.cols;
    const int64_t chunk = op_.scratch.cols / stride;
    BRISK_CHECK(chunk > 0 || op_.x.rows == 0, "scratch of {} floats holds no row of {} logits", op_.scratch.cols,
                stride);
    const bool to_16_bits = arithmetic_ == Arithmetic::bf16;
    bool adds = op_.dweight_adds;
    if (op_.dbias && !op_.dbias_adds) std::memset(op_.dbias.f32(), 0, static_cast<size_t>(vocabulary_) * 4);
    if (op_.x.rows == 0 && op_.dweight && !adds) {
      for (int64_t v = 0; v < vocabulary_; ++v) {
        std::memset(op_.dweight.f32() + v * op_.dweight.stride, 0, static_cast<size_t>(width) * 4);
      }
    }
    for (int64_t begin = 0; begin < op_.x.rows; begin += chunk) {
      const int64_t rows = std::min(chunk, op_.x.rows - begin);
      const Tensor logits{op_.scratch.data, DType::f32, rows, vocabulary_, stride};
      const Tensor x = op_.x.row_range(begin, rows);
      gemm(rows, vocabulary_, width, operand(x), operand(op_.weight, true), {.c = logits, .bias = op_.bias.f32()},
           arithmetic_);
      thread_pool().for_range(rows, 1, [&](int64_t first, int64_t last, int) {
        for (int64_t r = first; r < last; ++r) {
          float* row = logits.f32() + r * stride;
          finish_with_gradient(begin + r, row, r + 1 < last ? row + stride : row, to_16_bits);
        }
      });
      Tensor dlogits = logits;
      if (to_16_bits) dlogits = {op_.scratch.data, DType::bf16, rows, vocabulary_, 2 * stride};
      if (op_.dx) {
        gemm(rows, width, vocabulary_, operand(dlogits), operand(op_.weight), {.c = op_.dx.row_range(begin, rows)},
             arithmetic_);
      }
      if (op_.dweight) {
        gemm(vocabulary_, width, rows, operand(dlogits, true), operand(x), {.c = op_.dweight, .adds = adds},
             arithmetic_);
        adds = true;
      }
      if (op_.dbias) add_column_sums(dlogits);
    }
  }

  // Blocks of rows and vocabulary: each block of logits is folded into its rows' states and forgotten.
  void without_gradient() {
    const int64_t chunk = op_.scratch.cols / (kBlockCols + kStateFloats);
    BRISK_CHECK(chunk > 0 || op_.x.rows == 0, "scratch of {} floats holds no block of logits", op_.scratch.cols);
    float* block_logits = op_.scratch.f32();
    SoftmaxState* states = reinterpret_cast<SoftmaxState*>(block_logits + chunk * kBlockCols);
    float* target_logits = reinterpret_cast<float*>(states + chunk);
    for (int64_t begin = 0; begin < op_.x.rows; begin += chunk) {
      const int64_t rows = std::min(chunk, op_.x.rows - begin);
      std::fill(states, states + rows, SoftmaxState{});
      for (int64_t first = 0; first < vocabulary_; first += kBlockCols) {
        const int64_t count = std::min(kBlockCols, vocabulary_ - first);
        const Tensor logits = matrix(block_logits, DType::f32, rows, kBlockCols);
        gemm(rows, count, op_.x.cols, operand(op_.x.row_range(begin, rows)),
             operand(op_.weight.row_range(first, count), true),
             {.c = logits, .bias = op_.bias ? op_.bias.f32() + first : nullptr}, arithmetic_);
        thread_pool().for_range(rows, 1, [&](int64_t row, int64_t last, int) {
          for (; row < last; ++row) {
            const float* of_row = block_logits + row * kBlockCols;
            add(of_row, first, count, states[row]);
            const int64_t target = op_.targets[begin + row] - first;
            if (target >= 0 && target < count) target_logits[row] = of_row[target];
          }
        });
      }
      for (int64_t r = 0; r < rows; ++r)
        finish(begin + r, states[r], op_.targets[begin + r] >= 0 ? target_logits[r] : 0);
    }
  }

  void sum_up() const {
    double sums[4] = {};
    for (int64_t i = 0; i < op_.x.rows; ++i) {
      if (op_.targets[i] < 0) continue;
      const double loss = op_.loss.f32()[i * op_.loss.stride];
      const double weight = weight_of(i);
      sums[0] += weight * loss;
      sums[1] += op_.argmax.i32()[i * op_.argmax.stride] == op_.targets[i];
      sums[2] += 1;
      sums[3] += weight;
    }
    for (int64_t s = 0; s < 4; ++s) op_.sums.f32()[s] = static_cast<float>(sums[s]);
  }

 private:
  float weight_of(int64_t row) const { return op_.weights != nullptr ? op_.weights[row] : 1.0f; }

  // Columns are shared out, and each is summed in the order of the rows: the same bits for any number of threads.
  void add_column_sums(const Tensor& dlogits) const {
    constexpr int64_t kColumns = 512;
    thread_pool().for_range(vocabulary_, kColumns, [&](int64_t first, int64_t last, int) {
      const Tensor part = dlogits.columns(first, last - first);
      if (has_vector_kernels()) {
        BRISK_ACTIVE_ISA(linear_column_sums)(part, 0, part.rows, op_.dbias.f32() + first);
        return;
      }
      for (int64_t row = 0; row < part.rows; ++row) {
        for (int64_t c = 0; c < part.cols; ++c) op_.dbias.f32()[first + c] += element(part, row, c);
      }
    });
  }

  void add(const float* logits, int64_t first, int64_t count, SoftmaxState& state) const {
    if (has_vector_kernels()) return BRISK_ACTIVE_ISA(softmax_add)(logits, first, count, state);
    plain_add(logits, first, count, state);
  }

  void finish(int64_t row, const SoftmaxState& state, float target_logit) const {
    const float log_sum_exp = state.largest + std::log(state.sum);
    float loss = 0;
    if (op_.targets[row] >= 0) {
      const float plain = log_sum_exp - target_logit, mean = state.total / static_cast<float>(vocabulary_);
      loss = (1 - op_.label_smoothing) * plain + op_.label_smoothing * (log_sum_exp - mean);
    }
    op_.loss.f32()[row * op_.loss.stride] = loss;
    op_.argmax.i32()[row * op_.argmax.stride] = state.argmax;
  }

  void finish_with_gradient(int64_t row, float* logits, const float* next, bool to_16_bits) const {
    const int32_t target = op_.targets[row];
    if (target < 0) {
      SoftmaxState state;
      add(logits, 0, vocabulary_, state);
      finish(row, state, 0);
      std::memset(logits, 0, static_cast<size_t>(vocabulary_) * (to_16_bits ? 2 : 4));
      return;
    }
    if (op_.soft_targets != nullptr) return finish_with_soft_targets(row, logits, to_16_bits);
    SoftmaxGradient gradient;
    gradient.scale = op_.scale * weight_of(row);
    gradient.everywhere = gradient.scale * op_.label_smoothing / static_cast<float>(vocabulary_);
    gradient.less_at_target = gradient.scale * (1 - op_.label_smoothing);
    gradient.target = target;
    gradient.next = next;
    const float target_logit = logits[target];
    finish(row,
           has_vector_kernels() ? BRISK_ACTIVE_ISA(softmax_gradient)(logits, vocabulary_, gradient, to_16_bits)
                                : plain_gradient(logits, vocabulary_, gradient, to_16_bits),
           target_logit);
  }

  // Plain loops: a row is a handful of classes, and what is computed of one is a thousandth of its text's product.
  void finish_with_soft_targets(int64_t row, float* logits, bool to_16_bits) const {
    const float T = op_.temperature, soft = op_.soft_weight, hard = 1 - soft;
    const float scale = op_.scale * weight_of(row);
    const float* shares = op_.soft_targets + row * vocabulary_;
    SoftmaxState state;
    plain_add(logits, 0, vocabulary_, state);
    finish(row, state, logits[op_.targets[row]]);
    double total = 0, divergence = 0;
    for (int64_t c = 0; c < vocabulary_; ++c) total += std::exp((logits[c] - state.largest) / T);
    const auto log_total = static_cast<float>(std::log(total));
    for (int64_t c = 0; c < vocabulary_; ++c) {
      const float log_share = (logits[c] - state.largest) / T - log_total, p = shares[c];
      if (p > 0) divergence += p * (std::log(p) - log_share);
      const float wanted =
          op_.label_smoothing / static_cast<float>(vocabulary_) + (c == op_.targets[row] ? 1 - op_.label_smoothing : 0);
      const float dhard = std::exp(logits[c] - state.largest) / state.sum - wanted;
      const float d = scale * (hard * dhard + soft * T * (std::exp(log_share) - p));
      if (to_16_bits) {
        reinterpret_cast<bf16_t*>(logits)[c] = to_bf16(d);
      } else {
        logits[c] = d;
      }
    }
    float& loss = op_.loss.f32()[row * op_.loss.stride];
    loss = hard * loss + soft * T * T * static_cast<float>(divergence);
  }

  const LinearCrossEntropy& op_;
  const int64_t vocabulary_;
  const Arithmetic arithmetic_;
};

}  // namespace

void linear_cross_entropy(const LinearCrossEntropy& op) {
  Loss loss(op);
  if (op.dx || op.dweight || op.dbias) {
    loss.with_gradient();
  } else {
    BRISK_CHECK(op.soft_targets == nullptr, "soft targets without gradient");
    loss.without_gradient();
  }
  loss.sum_up();
}

}  // namespace cpu

}  // namespace brisk
