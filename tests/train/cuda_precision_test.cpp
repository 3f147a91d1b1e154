// Loss curves on a card in every precision, beside fp32's.
#include <gtest/gtest.h>

#include "tensor/device.h"
#include "train/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;

class PrecisionOnACard : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_cards(&why).empty()) GTEST_SKIP() << "no NVIDIA card to run this on: " << why;
    options_.device = &cuda_device();
  }
  EngineOptions options_ = tiny_options(GetParam().config);
  const Corpus corpus_ = tiny_corpus(2000);
  Threads threads_{1};
};

TEST_P(PrecisionOnACard, Tf32FollowsFp32) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 40, 32, 16);
  for (const bool muon : {false, true}) {
    SCOPED_TRACE(muon ? "muon" : "adamw");
    if (muon) options_.muon = MuonOptions{};
    options_.products = ProductFormat::own;
    const Curve fp32 = train_curve(options_, steps);
    options_.products = ProductFormat::tf32;
    const Curve tf32 = train_curve(options_, steps);
    expect_same_curve(tf32, fp32, 1e-2);
    EXPECT_NE(tf32.losses, fp32.losses);  // it is not fp32 by another name
    expect_same_bits(train_curve(options_, steps), tf32);
  }
}

TEST_P(PrecisionOnACard, Fp8FollowsBf16) {
  if (cuda_device().compute_capability() < 89) GTEST_SKIP() << "the card has no products in eight bits";
  options_.compute_type = DType::bf16;
  const std::vector<StepBatch> steps = packed_steps(corpus_, 40, 32, 16);
  for (const bool muon : {false, true}) {
    SCOPED_TRACE(muon ? "muon" : "adamw");
    if (muon) options_.muon = MuonOptions{};
    options_.products = ProductFormat::own;
    const Curve bf16 = train_curve(options_, steps);
    options_.products = ProductFormat::fp8;
    const Curve fp8 = train_curve(options_, steps);
    expect_same_curve(fp8, bf16, 4e-2);
    EXPECT_NE(fp8.losses, bf16.losses);  // it is not bf16 by another name
    expect_same_bits(train_curve(options_, steps), fp8);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PrecisionOnACard, ::testing::ValuesIn(both_shapes()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace brisk
