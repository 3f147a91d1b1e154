// How long the ops take on a GPU, at the shapes of the jobs brisk is measured by. Asked for, since it proves nothing:
//
//   BRISK_TIMES=1 test_ops --gtest_filter='CudaTimes.*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "ops/activation/gated.h"
#include "ops/attention/attention.h"
#include "ops/attention/cuda/attention_cudnn_cuda.h"
#include "ops/attention/cuda/attention_variants_cuda.h"
#include "ops/embedding/embedding.h"
#include "ops/norm/norm.h"
#include "ops/optimizer/update.h"
#include "ops/rotary/rotary.h"
#include "ops/rows/rows_copy.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuNumbers;
using testing::GpuRows;
using testing::Side;

class CudaTimes : public testing::OnGpu {
 protected:
  void SetUp() override {
    if (std::getenv("BRISK_TIMES") == nullptr) GTEST_SKIP() << "times are taken with BRISK_TIMES=1";
    OnGpu::SetUp();
  }
};

// Device memory without a copy on the host: zeros, or small bf16 values.
class GpuMemory {
 public:
  GpuMemory(int64_t rows, int64_t cols, DType type) : buffer_(cuda_device(), rows * cols * size_of(type)) {
    view_ = matrix(buffer_.data(), type, rows, cols);
    std::vector<uint16_t> values(static_cast<size_t>(rows * cols * size_of(type) / 2));
    for (size_t i = 0; i < values.size(); ++i) {
      const float value = static_cast<float>(random_bits(7, static_cast<uint32_t>(i)) >> 8) * 0x1.0p-24f - 0.5f;
      values[i] = type == DType::bf16 || i % 2 == 1 ? to_bf16(value).bits : 0;
    }
    cuda_device().copy_in(buffer_.data(), values.data(), buffer_.bytes());
  }
  operator Tensor() const { return view_; }
  Tensor operator*() const { return view_; }

 private:
  Buffer buffer_;
  Tensor view_;
};

// Microseconds of one call: the best of three rounds of twenty.
template <typename Call>
double microseconds(const Call& call) {
  call();
  double best = 1e30;
  for (int round = 0; round < 3; ++round) {
    cuda_device().wait();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) call();
    cuda_device().wait();
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / 20);
  }
  return best;
}

void say_bytes(const char* what, double bytes, double us) {
  fmt::print("{:44} {:9.1f} us {:8.0f} GB/s\n", what, us, bytes / us * 1e-3);
}

void time_attention(const char* what, const std::vector<int>& lengths, int64_t heads, int64_t width, bool causal,
                    float dropout) {
  GpuRows rows(lengths);
  const int64_t n = rows.rows(), cols = heads * width;
  GpuMemory qkv(n, 3 * cols, DType::bf16), y(n, cols, DType::bf16), dy(n, cols, DType::bf16);
  GpuMemory dqkv(n, 3 * cols, DType::bf16), log_sum_exp(n, heads, DType::f32);
  AttentionForward op;
  op.shape = {heads, heads, width, 1 / std::sqrt(static_cast<float>(width)), causal};
  op.q = (*qkv).columns(0, cols);
  op.k = (*qkv).columns(cols, cols);
  op.v = (*qkv).columns(2 * cols, cols);
  op.queries = rows.at(Side::gpu);
  op.k_begin = op.queries.starts;
  op.k_end = op.queries.starts + 1;
  op.longest_keys = op.queries.longest;
  op.dropout = {dropout, 5};
  op.y = y;
  op.log_sum_exp = log_sum_exp;
  const AttentionBackward back{op, dy, (*dqkv).columns(0, cols), (*dqkv).columns(cols, cols),
                               (*dqkv).columns(2 * cols, cols)};
  double products = 0;  // of one [T, T] product over all heads
  for (const int length : lengths) {
    products += 2.0 * length * length * static_cast<double>(cols) * (causal ? 0.5 : 1.0);
  }
  const double forward_us = microseconds([&] { cuda::attention_forward(op); });
  const double backward_us = microseconds([&] { cuda::attention_backward(back); });
  fmt::print("{:44} {:9.1f} us {:8.0f} TFLOP/s   backward {:9.1f} us {:8.0f} TFLOP/s\n", what, forward_us,
             2 * products / forward_us * 1e-6, backward_us, 5 * products / backward_us * 1e-6);
  const auto say = [&](const char* direction, cuda::AttentionVariant variant, double operations, const auto& run) {
    const bool is_cudnn =
        variant == cuda::AttentionVariant::cudnn || variant == cuda::AttentionVariant::cudnn_unordered;
    if (variant == cuda::AttentionVariant::plain || (is_cudnn && dropout > 0)) return;
    if (!run()) {
      if (variant == cuda::AttentionVariant::cudnn)
        fmt::print("    {} cudnn: {}\n", direction, cuda::attention_refusal());
      return;
    }
    const double us = microseconds(run);
    fmt::print("    {} {:16} {:9.1f} us {:8.0f} TFLOP/s {}\n", direction, cuda::name_of(variant), us,
               operations / us * 1e-6, is_cudnn ? cuda::attention_engine() : "");
  };
  for (const cuda::AttentionVariant variant : cuda::every_attention_variant()) {
    say("forward ", variant, 2 * products, [&] { return cuda::attention_forward(op, variant); });
  }
  for (const cuda::AttentionVariant variant : cuda::every_attention_variant()) {
    say("backward", variant, 5 * products, [&] { return cuda::attention_backward(back, variant); });
  }
}

TEST_F(CudaTimes, Attention) {
  fmt::print("cuDNN {}\n", cuda::attention_library_version());
  time_attention("attention 32 x 1024, 12 x 64, causal", std::vector<int>(32, 1024), 12, 64, true, 0);
  time_attention("attention 64 x 128, 8 x 64, causal", std::vector<int>(64, 128), 8, 64, true, 0);
  std::vector<int> ragged;
  for (uint32_t s = 0; s < 256; ++s) {
    const double share = random_bits(3, s) * 0x1.0p-32;
    ragged.push_back(std::min(256, static_cast<int>(8 + 322 * share * share)));
  }
  time_attention("attention 256 ragged 8..256, 12 x 64", ragged, 12, 64, false, 0);
  time_attention("attention 256 ragged 8..256, 12 x 64, dropout", ragged, 12, 64, false, 0.1f);
}

TEST_F(CudaTimes, MoreAttention) {
  time_attention("attention 32 x 1024, 12 x 64, dropout", std::vector<int>(32, 1024), 12, 64, true, 0.1f);
  time_attention("attention 64 x 128, 4 x 32, causal", std::vector<int>(64, 128), 4, 32, true, 0);
  time_attention("attention 16 x 2048, 8 x 128, causal", std::vector<int>(16, 2048), 8, 128, true, 0);
  std::vector<int> documents;  // of a language model: most fill the context
  for (uint32_t s = 0; s < 40; ++s) documents.push_back(s % 3 == 0 ? static_cast<int>(random_bits(4, s) % 1024) : 1024);
  time_attention("attention 40 ragged to 1024, 12 x 64, causal", documents, 12, 64, true, 0);
}

TEST_F(CudaTimes, Rows) {
  for (const int64_t width : {128, 768, 1024}) {
    const int64_t n = 32768;
    GpuMemory x(n, width, DType::f32), y(n, width, DType::bf16), gain(1, width, DType::f32), bias(1, width, DType::f32);
    GpuMemory mean(n, 1, DType::f32), rstd(n, 1, DType::f32), dx(n, width, DType::f32), dgain(1, width, DType::f32);
    NormForward op{.x = x, .gain = gain, .bias = bias, .y = y, .mean = mean, .rstd = rstd};
    NormBackward back{.x = x, .gain = gain, .mean = mean, .rstd = rstd, .dy = y, .dx = dx};
    back.dx_adds = true;
    back.dgain = dgain;
    back.dbias = dgain;
    const double elements = static_cast<double>(n * width);
    say_bytes(fmt::format("norm forward {} x {}", n, width).c_str(), elements * 6,
              microseconds([&] { cuda::norm_forward(op); }));
    say_bytes(fmt::format("norm backward {} x {}", n, width).c_str(), elements * 14,
              microseconds([&] { cuda::norm_backward(back); }));
    GpuMemory gated_x(n, 2 * width, DType::bf16), gated_dx(n, 2 * width, DType::bf16);
    say_bytes(fmt::format("gated forward {} x {}", n, width).c_str(), elements * 6, microseconds([&] {
                cuda::gated_forward({Activation::silu, gated_x, y});
              }));
    say_bytes(fmt::format("gated backward {} x {}", n, width).c_str(), elements * 10, microseconds([&] {
                cuda::gated_backward({Activation::silu, gated_x, y, gated_dx});
              }));
    say_bytes(fmt::format("copy_rows adding {} x {}", n, width).c_str(), elements * 12,
              microseconds([&] { cuda::copy_rows(x, dx, true); }));
    GpuRows rows(std::vector<int>(32, 1024));
    const Rotary rotary{.x = gated_x, .y = gated_dx, .rows = rows.at(Side::gpu), .rotated = width, .head_width = 64};
    say_bytes(fmt::format("rotary {} x {}", n, 2 * width).c_str(), elements * 8,
              microseconds([&] { cuda::rotary(rotary); }));
  }
}

TEST_F(CudaTimes, EmbeddingAndUpdate) {
  const int64_t n = 32768, width = 768, vocabulary = 50304;
  GpuRows rows(std::vector<int>(32, 1024));
  std::vector<int32_t> drawn;  // as in text: a few tokens are frequent
  for (uint32_t i = 0; i < n; ++i) {
    drawn.push_back(static_cast<int32_t>(std::pow(50000.0, random_bits(9, i) * 0x1.0p-32)));
  }
  GpuNumbers tokens(drawn);
  GpuMemory table(vocabulary, width, DType::f32), positions(1024, width, DType::f32), y(n, width, DType::f32);
  EmbeddingForward op;
  op.tokens = tokens.at(Side::gpu);
  op.rows = rows.at(Side::gpu);
  op.table = table;
  op.positions = positions;
  op.y = y;
  say_bytes("embedding forward 32768 x 768", static_cast<double>(n * width * 8),
            microseconds([&] { cuda::embedding_forward(op); }));
  EmbeddingBackward back;
  back.tokens = op.tokens;
  back.rows = op.rows;
  back.dy = y;
  back.dtable = table;
  back.dtable_adds = true;
  say_bytes("embedding backward 32768 x 768, tokens", static_cast<double>(n * width * 4),
            microseconds([&] { cuda::embedding_backward(back); }));
  back.dtable = {};
  back.dpositions = positions;
  say_bytes("embedding backward 32768 x 768, positions", static_cast<double>(n * width * 4),
            microseconds([&] { cuda::embedding_backward(back); }));

  const int64_t count = int64_t{124} << 20;
  GpuMemory p(1, count, DType::f32), g(1, count, DType::f32), m(1, count, DType::f32), v(1, count, DType::f32);
  GpuMemory copy(1, count, DType::bf16);
  std::vector<AdamWRun> runs;
  for (int64_t r = 0; r < 100; ++r)
    runs.push_back({count / 1600 * 16 * r, count / 1600 * 16, count / 1600 * 16 * r, 0});
  StepNumbers step;
  step.applied = 1;
  Buffer gpu_runs(cuda_device(), static_cast<int64_t>(runs.size() * sizeof(AdamWRun)));
  Buffer gpu_step(cuda_device(), sizeof(StepNumbers));
  cuda_device().copy_in(gpu_runs.data(), runs.data(), gpu_runs.bytes());
  cuda_device().copy_in(gpu_step.data(), &step, sizeof(StepNumbers));
  AdamWRuns update{(*p).f32(), (*g).f32(), (*m).f32(), (*v).f32(), (*copy).bf16()};
  update.runs = static_cast<const AdamWRun*>(gpu_runs.data());
  update.run_count = static_cast<int64_t>(runs.size());
  update.elements = count / 1600 * 16 * 100;
  update.step = static_cast<const StepNumbers*>(gpu_step.data());
  say_bytes("AdamW of 130M parameters", static_cast<double>(count * 30),
            microseconds([&] { cuda::adamw_update(update); }));
  say_bytes("squared norm of 130M", static_cast<double>(count * 4), microseconds([&] {
              cuda::squared_norm((*g).f32(), count, &static_cast<StepNumbers*>(gpu_step.data())->squared_norm);
            }));
}

}  // namespace
}  // namespace brisk
