#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "ops/cuda/cuda_stream.h"
#include "ops/cuda/side_stream_cuda.h"
#include "ops/cuda/workspace_cuda.h"
#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"
#include "ops/gemm/gemm.h"
#include "ops/linear/linear_elementwise_cuda.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/loss/linear_cross_entropy_elementwise_cuda.h"
#include "ops/loss/linear_cross_entropy_hopper.h"
#include "ops/rows/rows_copy.h"

namespace brisk::cuda {

namespace {

// Each chunk of rows adds to the whole gradient of the weight once, so a chunk wants to be high.
constexpr int64_t kChunkBytes = int64_t{832} << 20;
constexpr int64_t kMostRows = 16384;

int64_t logits_stride(int64_t vocabulary) { return round_up(vocabulary, 64); }

// Above this a vocabulary's logits are most of the memory traffic of a training step. With bf16 products they are then
// bf16, as in torch's autocast, and become their gradients in place: a third of the traffic of f32. A logit l is off by
// up to |l| / 512, and so is the logarithm of its probability, unless it never reaches memory
// (ops/loss/linear_cross_entropy_hopper.h). Below it, for classes, and without gradient they are f32.
constexpr int64_t kLargeVocabulary = 8192;

DType logits_type(DType weight_type, int64_t vocabulary, bool gradient) {
  return gradient && weight_type == DType::bf16 && vocabulary > kLargeVocabulary ? DType::bf16 : DType::f32;
}

// Of a row of logits, and of their gradients where these lie elsewhere.
int64_t bytes_of_row(DType weight_type, int64_t vocabulary, bool gradient) {
  const DType type = logits_type(weight_type, vocabulary, gradient);
  const bool apart = gradient && type != weight_type;
  return logits_stride(vocabulary) * (size_of(type) + (apart ? size_of(weight_type) : 0));
}

void clear(const Tensor& t) {
  check(cudaMemset2DAsync(t.data, static_cast<size_t>(t.stride * size_of(t.type)), 0,
                          static_cast<size_t>(t.cols * size_of(t.type)), static_cast<size_t>(t.rows), stream()),
        "clearing a gradient");
}

class GpuLoss {
 public:
  explicit GpuLoss(const LinearCrossEntropy& op)
      : op_(op),
        gradient_(op.dx || op.dweight || op.dbias),
        type_(logits_type(op.weight.type, op.weight.rows, gradient_)) {
    BRISK_CHECK(op.x.cols == op.weight.cols, "x [{}, {}], weight [{}, {}]", op.x.rows, op.x.cols, op.weight.rows,
                op.weight.cols);
  }

  void run() {
    const int64_t vocabulary = op_.weight.rows, stride = logits_stride(vocabulary), width = op_.x.cols;
    const int64_t chunk = op_.scratch.cols * size_of(DType::f32) / bytes_of_row(op_.weight.type, vocabulary, gradient_);
    BRISK_CHECK(chunk > 0 || op_.x.rows == 0, "scratch of {} floats holds no row of {} logits", op_.scratch.cols,
                stride);
    if (op_.x.rows == 0) {
      if (op_.dweight && !op_.dweight_adds) clear(op_.dweight);
      if (op_.dbias && !op_.dbias_adds) clear(op_.dbias);
    }
    const bool own_x = op_.x.type != op_.weight.type, by_exponentials = can_take_exponentials();
    for (int64_t begin = 0; begin < op_.x.rows; begin += chunk) {
      const int64_t rows = std::min(chunk, op_.x.rows - begin);
      const Tensor logits{op_.scratch.data, type_, rows, vocabulary, stride};
      Tensor dlogits = logits;
      if (gradient_ && type_ != op_.weight.type) {
        dlogits = {static_cast<char*>(op_.scratch.data) + chunk * stride * size_of(type_), op_.weight.type, rows,
                   vocabulary, stride};
      }
      const int64_t x_bytes = own_x ? carved(rows * width * size_of(op_.weight.type)) : 0;
      const int64_t partial_bytes = op_.dbias ? carved(linear_partial_floats(logits) * size_of(DType::f32)) : 0;
      const int64_t scaled_bytes = by_exponentials ? carved(rows * width * size_of(op_.weight.type)) : 0;
      const int64_t factor_bytes = by_exponentials ? carved(rows * size_of(DType::f32)) : 0;
      const int64_t state_bytes = by_exponentials ? carved(exponentials_state_bytes(rows)) : 0;
      WorkspaceCarver carver(x_bytes + partial_bytes + scaled_bytes + factor_bytes + state_bytes);
      Tensor x = op_.x.row_range(begin, rows);
      if (own_x) {
        const Tensor converted = matrix(carver.take(x_bytes), op_.weight.type, rows, width);
        copy_rows(x, converted, false);
        x = converted;
      }
      float* factors = nullptr;  // of each row, where the gradient still lacks them
      if (by_exponentials) {
        const Tensor scaled = matrix(carver.take(scaled_bytes), op_.weight.type, rows, width);
        factors = static_cast<float*>(carver.take(factor_bytes));
        loss_exponentials({rows_of(begin, logits, dlogits), x, op_.weight, scaled, factors, carver.take(state_bytes)});
        x = scaled;
      } else {
        multiply_or_fail(
            {.m = rows, .n = vocabulary, .k = width, .a = operand(x), .b = operand(op_.weight, true), .c = logits});
        loss_rows(rows_of(begin, logits, dlogits), gradient_);
      }
      if (!gradient_) continue;
      const auto give_parameters = [&] {
        if (op_.dweight) {
          GemmProblem product{.m = vocabulary, .n = width, .k = rows, .a = operand(dlogits, true), .b = operand(x)};
          product.c = op_.dweight;
          if (op_.dweight_adds || begin > 0) product.addend = op_.dweight;
          multiply_or_fail(product);
        }
        if (op_.dbias) {
          LinearGradientPass pass;
          pass.dy = dlogits;
          pass.dbias = op_.dbias;
          pass.dbias_adds = op_.dbias_adds || begin > 0;
          pass.partial = static_cast<float*>(carver.take(partial_bytes));
          linear_gradient_pass(pass);
        }
      };
      SideStream side_stream;
      side_stream.queue(give_parameters);
      if (op_.dx) {
        multiply_or_fail({.m = rows,
                          .n = width,
                          .k = vocabulary,
                          .a = operand(dlogits),
                          .b = operand(op_.weight),
                          .c = op_.dx.row_range(begin, rows)});
        if (factors != nullptr) scale_rows(op_.dx.row_range(begin, rows), factors);
      }
      side_stream.join();
    }
    sum_up();
  }

 private:
  static int64_t carved(int64_t bytes) { return round_up(bytes, WorkspaceCarver::kAlignment); }

  void multiply_or_fail(GemmProblem p) const {
    p.tf32 = op_.products == GemmFormat::tf32 && op_.weight.type == DType::f32;
    BRISK_CHECK(multiply(p), "cuBLASLt cannot multiply [{}, {}] by [{}, {}]", p.m, p.k, p.k, p.n);
  }

  // Large vocabularies alone have bf16 logits.
  bool can_take_exponentials() const {
    return type_ == DType::bf16 && !op_.bias && !op_.dbias && op_.label_smoothing == 0 &&
           has_exponentials(op_.x, op_.weight, op_.dx);
  }

  LossRows rows_of(int64_t begin, const Tensor& logits, const Tensor& dlogits) const {
    LossRows a{};
    a.logits = logits.data;
    a.type = type_;
    a.rows = logits.rows;
    a.stride = logits.stride;
    a.vocabulary = logits.cols;
    a.gradient = dlogits.data;
    a.gradient_type = dlogits.type;
    a.bias = op_.bias.f32();
    a.targets = op_.targets + begin;
    a.weights = op_.weights != nullptr ? op_.weights + begin : nullptr;
    a.label_smoothing = op_.label_smoothing;
    a.scale = op_.scale;
    a.step_scale = op_.step_scale;
    a.loss = op_.loss.f32() + begin * op_.loss.stride;
    a.loss_stride = op_.loss.stride;
    a.argmax = op_.argmax.i32() + begin * op_.argmax.stride;
    a.argmax_stride = op_.argmax.stride;
    return a;
  }

  void sum_up() const {
    LossSums a{};
    a.rows = op_.x.rows;
    a.targets = op_.targets;
    a.weights = op_.weights;
    a.loss = op_.loss.f32();
    a.loss_stride = op_.loss.stride;
    a.argmax = op_.argmax.i32();
    a.argmax_stride = op_.argmax.stride;
    a.sums = op_.sums.f32();
    sum_losses(a);
  }

  const LinearCrossEntropy& op_;
  const bool gradient_;
  const DType type_;
};

}  // namespace

int64_t linear_cross_entropy_scratch(int64_t rows, int64_t vocabulary, DType weight_type, bool gradient) {
  const int64_t row_bytes = bytes_of_row(weight_type, vocabulary, gradient);
  const int64_t most = std::clamp<int64_t>(kChunkBytes / row_bytes, 1, kMostRows);
  const int64_t chunks = std::max<int64_t>(1, divide_up(rows, most));
  return std::max<int64_t>(1, divide_up(rows, chunks)) * row_bytes;
}

void linear_cross_entropy(const LinearCrossEntropy& op) { GpuLoss(op).run(); }

}  // namespace brisk::cuda
