#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/optimizer/update.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::OnGpu;
using testing::Side;

using CudaUpdate = OnGpu;

// A struct in device memory.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values)
      : size_(static_cast<int64_t>(values.size() * sizeof(T))), buffer_(cuda_device(), size_) {
    cuda_device().copy_in(buffer_.data(), values.data(), size_);
  }
  T* data() const { return static_cast<T*>(buffer_.data()); }
  T first() const {
    T value;
    cuda_device().copy_out(&value, buffer_.data(), sizeof(T));
    return value;
  }

 private:
  int64_t size_;
  Buffer buffer_;
};

StepNumbers limitless() {
  StepNumbers step;
  step.norm_limit = step.loss_limit = std::numeric_limits<float>::infinity();
  return step;
}

TEST_F(CudaUpdate, AdamWUpdatesEveryRunAndNothingBetween) {
  const int64_t count = 20000;
  for (const float applied : {1.0f, 0.0f}) {
    GpuMatrix p(1, count, DType::f32, 1), g(1, count, DType::f32, 2), m(1, count, DType::f32, 3, 0.1);
    GpuMatrix v(1, count, DType::f32, 4, 0), copy(1, count, DType::bf16, 5);
    GpuMatrix half_copy(1, count, DType::f16, 6);
    const std::vector<AdamWRun> runs = {
        {0, 4096, 0, 0.1f}, {4096, 16, 4096, 0.0f}, {8192, 3008, 4112, 0.2f}, {12000, 8000, 7120, 0.0f}};
    OnDevice<AdamWRun> gpu_runs(runs);
    StepNumbers step;
    step.rate = 0.01f;
    step.correction1 = 0.1f;
    step.correction2 = 0.05f;
    step.gradient_scale = 0.5f;
    step.applied = applied;
    OnDevice<StepNumbers> gpu_step({step});
    AdamWRuns op;
    op.parameters = p.at(Side::gpu).f32();
    op.gradient = g.at(Side::gpu).f32();
    op.m = m.at(Side::gpu).f32();
    op.v = v.at(Side::gpu).f32();
    op.copy = copy.at(Side::gpu).bf16();
    op.half_copy = half_copy.at(Side::gpu).f16();
    op.runs = gpu_runs.data();
    op.run_count = static_cast<int64_t>(runs.size());
    for (const AdamWRun& run : runs) op.elements += run.count;
    op.beta2 = 0.95f;
    op.step = gpu_step.data();
    cuda::adamw_update(op);
    for (const AdamWRun& run : runs) {
      if (applied == 0) continue;
      AdamWUpdate expected;
      expected.parameters = p.at(Side::host).f32() + run.begin;
      expected.gradient = g.at(Side::host).f32() + run.begin;
      expected.m = m.at(Side::host).f32() + run.begin;
      expected.v = v.at(Side::host).f32() + run.second_moment_begin;
      expected.copy = copy.at(Side::host).bf16() + run.begin;
      expected.count = run.count;
      expected.rate = 0.01f;
      expected.beta2 = 0.95f;
      expected.decay = run.decay;
      expected.correction1 = 0.1f;
      expected.correction2 = 0.05f;
      expected.gradient_scale = 0.5f;
      ref::adamw_update(expected);
      for (int64_t i = run.begin; i < run.begin + run.count; ++i) half_copy.host().set(0, i, p.host().get(0, i));
    }
    p.expect_close(1e-6, "parameters");
    m.expect_close(1e-6, "first moment");
    v.expect_close(1e-6, "second moment");
    copy.expect_close(4e-3, "compute copy");
    half_copy.expect_close(5e-4, "compute copy in f16");
  }
}

TEST_F(CudaUpdate, TheSquaredNormIsTheReferencesAndTheSameEveryTime) {
  for (const int64_t count : {1, 7, 4096, 1000003}) {
    GpuMatrix values(1, count, DType::f32, 1);
    OnDevice<double> result({0.0});
    cuda::squared_norm(values.at(Side::gpu).f32(), count, result.data());
    const double first = result.first();
    EXPECT_NEAR(first, ref::squared_norm(values.at(Side::host).f32(), count), 1e-6 * static_cast<double>(count));
    cuda::squared_norm(values.at(Side::gpu).f32(), count, result.data());
    EXPECT_EQ(first, result.first());
  }
}

TEST_F(CudaUpdate, ConvertsToBf16AsTheReference) {
  for (const int64_t count : {1, 8, 1001}) {
    GpuMatrix values(1, count, DType::f32, 1), out(1, count, DType::bf16, 0, 0);
    ref::convert_to_bf16(values.at(Side::host).f32(), out.at(Side::host).bf16(), count);
    cuda::convert_to_bf16(values.at(Side::gpu).f32(), out.at(Side::gpu).bf16(), count);
    out.expect_equal("bf16 ");
  }
}

TEST_F(CudaUpdate, ConvertsToF16AsSoftware) {
  for (const double scale : {1.0, 1e-6, 5e4}) {  // subnormal numbers, and some that are too large
    GpuMatrix values(1, 1001, DType::f32, 1, scale), out(1, 1001, DType::f16, 0, 0);
    for (int64_t i = 0; i < 1001; ++i) out.host().set(0, i, values.host().get(0, i));
    cuda::convert_to_f16(values.at(Side::gpu).f32(), out.at(Side::gpu).f16(), 1001);
    out.expect_equal("f16 ");
  }
}

StepNumbers decided(StepNumbers step) {
  OnDevice<StepNumbers> gpu({step});
  cuda::decide_step(gpu.data());
  return gpu.first();
}

TEST_F(CudaUpdate, AStepIsClippedWhereItsNormIsTooLarge) {
  StepNumbers step = limitless();
  step.squared_norm = 25;
  step.max_norm = 2;
  EXPECT_FLOAT_EQ(decided(step).gradient_scale, 0.4f);
  EXPECT_EQ(decided(step).applied, 1);
  step.max_norm = 10;
  EXPECT_EQ(decided(step).gradient_scale, 1);
  step.max_norm = 0;
  EXPECT_EQ(decided(step).gradient_scale, 1);
}

TEST_F(CudaUpdate, AScaledGradientIsJudgedAndTakenUnscaled) {
  StepNumbers step = limitless();
  step.scaling = 1024;
  step.squared_norm = 25.0 * 1024 * 1024;
  step.max_norm = 10;
  EXPECT_EQ(decided(step).gradient_scale, 1.0f / 1024);
  step.max_norm = 2;
  EXPECT_FLOAT_EQ(decided(step).gradient_scale, 0.4f / 1024);
  step.norm_limit = 6;
  EXPECT_EQ(decided(step).applied, 1);
  step.norm_limit = 4;
  EXPECT_EQ(decided(step).applied, 0);
}

TEST_F(CudaUpdate, AStepThatIsNotFiniteOrAboveALimitIsNotApplied) {
  StepNumbers step = limitless();
  step.squared_norm = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(decided(step).applied, 0);
  step.squared_norm = std::numeric_limits<double>::infinity();
  EXPECT_EQ(decided(step).applied, 0);
  step.squared_norm = 9;
  EXPECT_EQ(decided(step).applied, 1);
  step.norm_limit = 2;
  EXPECT_EQ(decided(step).applied, 0);
  step.norm_limit = 4;
  step.loss_limit = 3;
  step.loss_sum = 10;
  step.weight_sum = 5;
  EXPECT_EQ(decided(step).applied, 1);
  step.weight_sum = 2;
  EXPECT_EQ(decided(step).applied, 0);
  step.loss_limit = std::numeric_limits<float>::infinity();
  step.loss_sum = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(decided(step).applied, 0);
}

TEST_F(CudaUpdate, LossSumsAddUpOverMicroBatches) {
  GpuMatrix sums(1, 4, DType::f32, 3);
  OnDevice<StepNumbers> step({StepNumbers{.loss_sum = 100}});
  cuda::add_loss_sums(sums.at(Side::gpu).f32(), true, step.data());
  cuda::add_loss_sums(sums.at(Side::gpu).f32(), false, step.data());
  const StepNumbers got = step.first();
  EXPECT_DOUBLE_EQ(got.loss_sum, 2.0 * sums.host().get(0, 0));
  EXPECT_DOUBLE_EQ(got.correct, 2.0 * sums.host().get(0, 1));
  EXPECT_DOUBLE_EQ(got.targets, 2.0 * sums.host().get(0, 2));
  EXPECT_DOUBLE_EQ(got.weight_sum, 2.0 * sums.host().get(0, 3));
}

}  // namespace
}  // namespace brisk
