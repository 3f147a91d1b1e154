// MU against PyTorch's sixteen attentions a layer, one after the other: logits, every gradient and ten AdamW steps, as it was
// first written and as it is by default, from the files that scripts/make_mu_golden.py writes.
#include <gtest/gtest.h>

#include "models/mu.h"
#include "support/golden_training.h"

namespace brisk {
namespace {

using testing::for_each_isa;

constexpr double kBf16 = 2e-2;

class MuGolden : public testing::GoldenTraining {
 public:
  explicit MuGolden(const std::string& name) : GoldenTraining(name) {}

  EngineOptions options(DType compute_type, Backend backend) const {
    return engine_options(MuConfig{.vocab_size = integer("vocab_size"),
                                   .num_layers = integer("num_layers"),
                                   .max_length = integer("max_length"),
                                   .norm_epsilon = number("norm_epsilon"),
                                   .reference = integer("reference") == 1},
                          compute_type, backend);
  }
};

void compare(const MuGolden& golden, const EngineOptions& options, double tolerance) {
  golden.compare(options, tolerance,
                 [](const Model& model, Tape& tape) { return dynamic_cast<const Mu&>(model).logits(tape); });
}

class MuPyTorch : public ::testing::TestWithParam<const char*> {
 protected:
  testing::Threads threads_{1};
};

TEST_P(MuPyTorch, AgreesInFp32OnEveryInstructionSet) {
  const MuGolden golden(GetParam());
  for_each_isa([&](Isa) { compare(golden, golden.options(DType::f32, Backend::cpu), 1e-5); });
}

TEST_P(MuPyTorch, AgreesInBf16OnEveryInstructionSet) {
  const MuGolden golden(GetParam());
  for_each_isa([&](Isa) { compare(golden, golden.options(DType::bf16, Backend::cpu), kBf16); });
}

TEST_P(MuPyTorch, AgreesWithTheReferenceBackend) {
  const MuGolden golden(GetParam());
  compare(golden, golden.options(DType::f32, Backend::reference), 1e-5);
}

TEST_P(MuPyTorch, AgreesOnTwoThreads) {
  const testing::Threads two(2);
  const MuGolden golden(GetParam());
  compare(golden, golden.options(DType::f32, Backend::cpu), 1e-5);
}

TEST_P(MuPyTorch, AgreesOnAGpu) {
  std::string why;
  if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
  const MuGolden golden(GetParam());
  for (const DType type : {DType::f32, DType::bf16}) {
    EngineOptions options = golden.options(type, Backend::cuda);
    options.device = &cuda_device();
    compare(golden, options, type == DType::f32 ? 1e-5 : kBf16);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, MuPyTorch, ::testing::Values("mu_reference", "mu_causal"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace brisk
