// Loss curves on a GPU in every precision, beside fp32's.
#include <gtest/gtest.h>

#include "support/tiny_job.h"
#include "tensor/device.h"

namespace brisk {
namespace {

using namespace brisk::testing;

class PrecisionOnAGpu : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
    options_.device = &cuda_device();
  }
  EngineOptions options_ = tiny_options(GetParam().config);
  const Corpus corpus_ = tiny_corpus(2000);
  Threads threads_{1};
};

TEST_P(PrecisionOnAGpu, Tf32FollowsFp32) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 40, 32, 16);
  for (const bool muon : {false, true}) {
    SCOPED_TRACE(muon ? "muon" : "adamw");
    if (muon) options_.muon = MuonOptions{};
    options_.products = GemmFormat::own;
    const Curve fp32 = train_curve(options_, steps);
    options_.products = GemmFormat::tf32;
    const Curve tf32 = train_curve(options_, steps);
    expect_same_curve(tf32, fp32, 1e-2);
    EXPECT_NE(tf32.losses, fp32.losses);  // it is not fp32 by another name
    expect_same_bits(train_curve(options_, steps), tf32);
  }
}

TEST_P(PrecisionOnAGpu, Fp8FollowsBf16) {
  if (cuda_device().compute_capability() < 89) GTEST_SKIP() << "the GPU has no products in eight bits";
  options_.compute_type = DType::bf16;
  const std::vector<StepBatch> steps = packed_steps(corpus_, 40, 32, 16);
  for (const bool muon : {false, true}) {
    SCOPED_TRACE(muon ? "muon" : "adamw");
    if (muon) options_.muon = MuonOptions{};
    options_.products = GemmFormat::own;
    const Curve bf16 = train_curve(options_, steps);
    options_.products = GemmFormat::fp8;
    const Curve fp8 = train_curve(options_, steps);
    expect_same_curve(fp8, bf16, 4e-2);
    EXPECT_NE(fp8.losses, bf16.losses);  // it is not bf16 by another name
    expect_same_bits(train_curve(options_, steps), fp8);
  }
}

TEST_P(PrecisionOnAGpu, Fp16FollowsFp32WithAScaledLoss) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 40, 32, 16);
  for (const bool muon : {false, true}) {
    SCOPED_TRACE(muon ? "muon" : "adamw");
    if (muon) options_.muon = MuonOptions{};
    options_.compute_type = DType::f32;
    const Curve fp32 = train_curve(options_, steps);
    options_.compute_type = DType::f16;
    const Curve fp16 = train_curve(options_, steps);
    expect_same_curve(fp16, fp32, 1e-2);
    EXPECT_NEAR(fp16.gradient_norms.front(), fp32.gradient_norms.front(), 1e-2 * fp32.gradient_norms.front());
    expect_same_bits(train_curve(options_, steps), fp16);
  }
}

TEST_P(PrecisionOnAGpu, AnOverflowInFp16SkipsTheStepAndHalvesTheScale) {
  options_.compute_type = DType::f16;
  Engine engine(options_);
  engine.initialise(options_.seed);
  const std::vector<StepBatch> steps = packed_steps(corpus_, 2, 32, 32);
  Ledger ledger;
  ASSERT_NE(engine.loss_scale(), nullptr);
  EXPECT_EQ(*engine.loss_scale(), LossScale{});
  engine.loss_scale()->scale = LossScale::kMost * 1024;  // beyond what it can become, so that it overflows
  const std::vector<float> before = values_of(cuda_device(), engine.parameters().flat_master());
  const StepResult skipped = engine.train_step(steps[0], 1, 1e-3, ledger);
  EXPECT_TRUE(skipped.overflowed);
  EXPECT_FALSE(skipped.updated);
  EXPECT_TRUE(std::isfinite(skipped.loss()));
  EXPECT_EQ(values_of(cuda_device(), engine.parameters().flat_master()), before);
  EXPECT_EQ(engine.loss_scale()->scale, LossScale::kMost * 512);
  EXPECT_EQ(engine.loss_scale()->skipped_steps, 1);
  engine.loss_scale()->scale = 1024;
  const StepResult done = engine.train_step(steps[1], 2, 1e-3, ledger);
  EXPECT_TRUE(done.updated);
  EXPECT_FALSE(done.overflowed);
  EXPECT_EQ(engine.loss_scale()->good_steps, 1);
  EXPECT_NE(values_of(cuda_device(), engine.parameters().flat_master()), before);
}

TEST_P(PrecisionOnAGpu, WeightsWithoutMastersFollowThoseWith) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 40, 32, 16);
  options_.compute_type = DType::bf16;
  for (const bool muon : {false, true}) {
    SCOPED_TRACE(muon ? "muon" : "adamw");
    if (muon) options_.muon = MuonOptions{};
    options_.master_weights = true;
    const Curve with = train_curve(options_, steps);
    const int64_t bytes = plan_memory(options_).state_bytes;
    options_.master_weights = false;
    const Curve without = train_curve(options_, steps);
    expect_same_curve(without, with, 3e-2);
    EXPECT_LT(plan_memory(options_).state_bytes, bytes);
    EXPECT_LT(without.masters.size(), with.masters.size());
    expect_same_bits(train_curve(options_, steps), without);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PrecisionOnAGpu, ::testing::ValuesIn(both_shapes()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace brisk
