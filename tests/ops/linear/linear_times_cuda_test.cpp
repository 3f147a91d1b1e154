// How long linear and the loss take on a GPU, at the shapes of the jobs brisk is measured by. Asked for, since it
// proves nothing:
//
//   BRISK_TIMES=1 test_ops --gtest_filter='CudaLinearTimes.*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "ops/linear/linear.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/optimizer/muon.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

class CudaLinearTimes : public testing::OnGpu {
 protected:
  void SetUp() override {
    if (std::getenv("BRISK_TIMES") == nullptr) GTEST_SKIP() << "times are taken with BRISK_TIMES=1";
    OnGpu::SetUp();
  }
};

// Small numbers in device memory.
class GpuNoise {
 public:
  GpuNoise(int64_t rows, int64_t cols, DType type)
      : buffer_(cuda_device(), rows * cols * size_of(type)), view_(matrix(buffer_.data(), type, rows, cols)) {
    constexpr int64_t kBlock = 1 << 20;
    std::vector<float> numbers(kBlock);
    std::vector<bf16_t> rounded(kBlock);
    for (int64_t i = 0; i < kBlock; ++i) {
      numbers[static_cast<size_t>(i)] = 0.05f * random_normal(random_key({3}), static_cast<uint64_t>(i));
      rounded[static_cast<size_t>(i)] = to_bf16(numbers[static_cast<size_t>(i)]);
    }
    const void* block = type == DType::bf16 ? static_cast<const void*>(rounded.data()) : numbers.data();
    for (int64_t at = 0; at < buffer_.bytes(); at += kBlock * size_of(type)) {
      cuda_device().copy_in(static_cast<char*>(buffer_.data()) + at, block,
                            std::min(kBlock * size_of(type), buffer_.bytes() - at));
    }
  }
  operator Tensor() const { return view_; }

 private:
  Buffer buffer_;
  Tensor view_;
};

template <typename Call>
double microseconds_of(const Call& call) {
  call();
  double best = 1e30;
  for (int round = 0; round < 3; ++round) {
    cuda_device().wait();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 10; ++i) call();
    cuda_device().wait();
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / 10);
  }
  return best;
}

void say_products(const std::string& what, double flop, double us) {
  fmt::print("{:56} {:9.1f} us {:8.0f} TFLOP/s\n", what, us, flop / us * 1e-6);
}

void time_linear(const char* what, int64_t n, int64_t inputs, int64_t outputs, Activation activation, bool residual,
                 bool gelu_below) {
  const DType y_type = residual ? DType::f32 : DType::bf16;
  GpuNoise x(n, inputs, DType::bf16), weight(outputs, inputs, DType::bf16), bias(1, outputs, DType::f32);
  GpuNoise bias_copy(1, outputs, DType::bf16), y(n, outputs, y_type), dy(n, outputs, y_type);
  GpuNoise before(n, outputs, DType::bf16), scratch(n, outputs, DType::bf16), dx(n, inputs, DType::bf16);
  GpuNoise dweight(outputs, inputs, DType::f32), dbias(1, outputs, DType::f32), below(n, inputs, DType::bf16);
  LinearForward forward;
  forward.x = x;
  forward.weight = weight;
  forward.bias = bias;
  forward.bias_copy = bias_copy;
  forward.activation = activation;
  if (activation != Activation::none) forward.before = before;
  if (residual) forward.residual = y;
  forward.y = y;
  LinearBackward backward;
  backward.dy = dy;
  backward.x = x;
  backward.weight = weight;
  // The tanh GELU's slope was taken by the product above.
  if (activation != Activation::none && activation != Activation::gelu_tanh) {
    backward.activation = activation;
    backward.before = before;
    backward.scratch = scratch;
  }
  backward.dx = dx;
  if (gelu_below) backward.dx_gelu = below;
  backward.dweight = dweight;
  backward.dbias = dbias;
  const double flop = 2.0 * static_cast<double>(n) * static_cast<double>(inputs) * static_cast<double>(outputs);
  say_products(fmt::format("{} forward", what), flop, microseconds_of([&] { cuda::linear_forward(forward); }));
  say_products(fmt::format("{} backward", what), 2 * flop, microseconds_of([&] { cuda::linear_backward(backward); }));
  backward.dx = backward.dx_gelu = {};
  say_products(fmt::format("{} backward, weight alone", what), flop,
               microseconds_of([&] { cuda::linear_backward(backward); }));
}

TEST_F(CudaLinearTimes, Linear) {
  const int64_t n = 32768;
  time_linear("GPT-2 qkv", n, 768, 2304, Activation::none, false, false);
  time_linear("GPT-2 attention out, f32 residual", n, 768, 768, Activation::none, true, false);
  time_linear("GPT-2 up, gelu", n, 768, 3072, Activation::gelu_tanh, false, false);
  time_linear("GPT-2 down, f32 residual, gelu's slope", n, 3072, 768, Activation::none, true, true);
  time_linear("BERT up, erf gelu", n, 768, 3072, Activation::gelu_erf, false, false);
  time_linear("LM large up, gelu", 8192, 512, 2048, Activation::gelu_tanh, false, false);
  time_linear("LM large down", 8192, 2048, 512, Activation::none, true, true);
  time_linear("LM small up, gelu", 8192, 256, 1024, Activation::gelu_tanh, false, false);
  time_linear("LM small qkv", 8192, 256, 768, Activation::none, false, false);
}

void time_loss(const char* what, int64_t n, int64_t width, int64_t vocabulary) {
  GpuNoise x(n, width, DType::bf16), weight(vocabulary, width, DType::bf16), loss(n, 1, DType::f32);
  GpuNoise argmax(n, 1, DType::f32), sums(1, 4, DType::f32), dx(n, width, DType::bf16);
  GpuNoise dweight(vocabulary, width, DType::f32);
  const int64_t bytes = cuda::linear_cross_entropy_scratch(n, vocabulary, DType::bf16, true);
  const Buffer scratch(cuda_device(), bytes), targets(cuda_device(), n * 4);
  LinearCrossEntropy op;
  op.x = x;
  op.weight = weight;
  op.targets = static_cast<const int32_t*>(targets.data());
  op.loss = loss;
  op.argmax = argmax;
  op.sums = sums;
  op.dx = dx;
  op.dweight = dweight;
  op.scratch = matrix(scratch.data(), DType::f32, 1, bytes / 4);
  const double flop = 6.0 * static_cast<double>(n) * static_cast<double>(width) * static_cast<double>(vocabulary);
  say_products(what, flop, microseconds_of([&] { cuda::linear_cross_entropy(op); }));
}

TEST_F(CudaLinearTimes, Loss) {
  time_loss("GPT-2 loss, 32768 rows", 32768, 768, 50304);
  time_loss("LM large loss, 8192 rows", 8192, 512, 50000);
  time_loss("LM small loss, 8192 rows", 8192, 256, 10000);
}

TEST_F(CudaLinearTimes, Muon) {
  std::vector<std::unique_ptr<GpuNoise>> memory;
  std::vector<MuonMatrix> matrices;
  for (int layer = 0; layer < 12; ++layer) {
    for (const auto& [rows, cols] :
         {std::pair{768, 768}, {768, 768}, {768, 768}, {768, 768}, {3072, 768}, {768, 3072}}) {
      for (int i = 0; i < 3; ++i) memory.push_back(std::make_unique<GpuNoise>(rows, cols, DType::f32));
      const size_t last = memory.size() - 1;
      matrices.push_back({.parameters = Tensor(*memory[last]).f32(),
                          .gradient = Tensor(*memory[last - 1]).f32(),
                          .momentum = Tensor(*memory[last - 2]).f32(),
                          .rows = rows,
                          .cols = cols});
    }
  }
  const Buffer workspace(cuda_device(), cuda::muon_workspace_floats(matrices) * 4);
  const MuonUpdate op{.matrices = matrices,
                      .workspace = static_cast<float*>(workspace.data()),
                      .rate = 1e-4f,
                      .arithmetic = Arithmetic::bf16};
  fmt::print("{:56} {:9.1f} us\n", "Muon, GPT-2's hidden matrices", microseconds_of([&] { cuda::muon_update(op); }));
}

}  // namespace
}  // namespace brisk
