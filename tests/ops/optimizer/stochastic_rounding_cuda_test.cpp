// Weights stored only in bf16 on a GPU: stochastic rounding makes updates exact in the mean.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/optimizer/muon.h"
#include "ops/optimizer/stochastic_rounding.h"
#include "ops/optimizer/update.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::OnGpu;
using testing::Side;

using CudaRounding = OnGpu;

template <typename T>
Buffer on_gpu(const T* values, int64_t count) {
  Buffer buffer(cuda_device(), count * static_cast<int64_t>(sizeof(T)));
  cuda_device().copy_in(buffer.data(), values, buffer.bytes());
  return buffer;
}

TEST_F(CudaRounding, AdamWRoundsEachWeightAsTheDrawSays) {
  constexpr int64_t kCount = 70016, kBegin = 4096;  // over a row of draws
  GpuMatrix g(1, kCount, DType::f32, 2), m(1, kCount, DType::f32, 3, 0), v(1, kCount, DType::f32, 4, 0);
  GpuMatrix weight(1, kCount, DType::bf16, 5), master(1, 64, DType::f32, 6);
  const std::vector<AdamWRun> runs = {
      {.begin = 0, .count = 64, .second_moment_begin = 0, .master_begin = 0},
      {.begin = kBegin, .count = kCount - kBegin, .second_moment_begin = kBegin, .decay = 0.1f, .has_master = false}};
  StepNumbers step;
  step.rate = 1e-4f;
  step.correction1 = 0.1f;
  step.correction2 = 0.05f;
  step.applied = 1;
  step.step_key = random_key({7, 42});
  const Buffer gpu_runs = on_gpu(runs.data(), std::ssize(runs)), gpu_step = on_gpu(&step, 1);
  AdamWRuns op;
  op.parameters = master.at(Side::gpu).f32();
  op.gradient = g.at(Side::gpu).f32();
  op.m = m.at(Side::gpu).f32();
  op.v = v.at(Side::gpu).f32();
  op.copy = weight.at(Side::gpu).bf16();
  op.runs = static_cast<const AdamWRun*>(gpu_runs.data());
  op.run_count = std::ssize(runs);
  op.elements = 64 + kCount - kBegin;
  op.beta2 = 0.95f;
  op.step = static_cast<const StepNumbers*>(gpu_step.data());
  cuda::adamw_update(op);
  const testing::Matrix& got = weight.gpu();
  int64_t differ = 0, moved = 0;
  double drift = 0;
  for (int64_t i = kBegin; i < kCount; ++i) {
    float p = weight.host().get(0, i);
    AdamWUpdate expected;
    float gradient = g.host().get(0, i), first = 0, second = 0, before = p;
    expected.parameters = &p;
    expected.gradient = &gradient;
    expected.m = &first;
    expected.v = &second;
    expected.count = 1;
    expected.rate = 1e-4f;
    expected.beta2 = 0.95f;
    expected.decay = 0.1f;
    expected.correction1 = 0.1f;
    expected.correction2 = 0.05f;
    ref::adamw_update(expected);
    const float rounded = to_float(to_bf16_stochastic(p, rounding_bits(rounding_key(step.step_key), i)));
    differ += rounded != got.get(0, i);  // the last bit of p may be another there, and tip the scale
    moved += got.get(0, i) != before;
    drift += double{got.get(0, i)} - p;
  }
  EXPECT_LE(differ, 20);
  EXPECT_GT(moved, 100);                                  // an update of 1e-4 moves few weights of size 1 ...
  EXPECT_LT(moved, kCount / 2);                           // ... and leaves the most alone
  EXPECT_LT(std::fabs(drift / (kCount - kBegin)), 4e-5);  // in the mean it is the update's own 1e-4, nearly
  master.gpu();
  EXPECT_NE(master.gpu().get(0, 3), master.host().get(0, 3));  // a run with masters beside it has its own
}

TEST_F(CudaRounding, MuonRoundsEachWeightAsTheDrawSays) {
  constexpr int64_t kRows = 64, kCols = 96, kBegin = 65536 - 512;
  GpuMatrix g(kRows, kCols, DType::f32, 2), momentum(kRows, kCols, DType::f32, 3, 0),
      weight(kRows, kCols, DType::bf16, 5);
  GpuMatrix master(kRows, kCols, DType::f32, 6, 0), with_master(kRows, kCols, DType::bf16, 5);
  GpuMatrix other_momentum(kRows, kCols, DType::f32, 3, 0);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kCols; ++c) master.host().set(r, c, weight.host().get(r, c));
  }
  master.take_reference();
  StepNumbers step;
  step.muon_rate = 2e-3f;
  step.applied = 1;
  step.step_key = random_key({7, 42});
  const Buffer gpu_step = on_gpu(&step, 1);
  const auto update = [&](MuonMatrix matrix) {
    matrix.gradient = g.at(Side::gpu).f32();
    matrix.rows = kRows;
    matrix.cols = kCols;
    const std::vector<MuonMatrix> matrices = {matrix};
    const Buffer workspace(cuda_device(), cuda::muon_workspace_floats(matrices) * 4);
    MuonUpdate op;
    op.matrices = matrices;
    op.workspace = static_cast<float*>(workspace.data());
    op.arithmetic = Arithmetic::bf16;
    op.step = static_cast<const StepNumbers*>(gpu_step.data());
    cuda::muon_update(op);
    cuda_device().wait();
  };
  update({.parameters = master.at(Side::gpu).f32(),
          .momentum = other_momentum.at(Side::gpu).f32(),
          .copy = with_master.at(Side::gpu).bf16()});
  update({.momentum = momentum.at(Side::gpu).f32(), .copy = weight.at(Side::gpu).bf16(), .begin = kBegin});
  const testing::Matrix &exact = master.gpu(), &got = weight.gpu();
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kCols; ++c) {
      const uint32_t draw = rounding_bits(rounding_key(step.step_key), kBegin + r * kCols + c);
      ASSERT_EQ(got.get(r, c), to_float(to_bf16_stochastic(exact.get(r, c), draw))) << r << ", " << c;
    }
  }
}

}  // namespace
}  // namespace brisk
