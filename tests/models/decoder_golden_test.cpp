// brisk against PyTorch: logits, every gradient and ten AdamW steps of both decoder shapes, from the files that
// scripts/make_golden.py writes. fp32 within 1e-5, bf16 within 2e-2 of the exact values, norm-wise per tensor.
#include <gtest/gtest.h>

#include "support/golden_training.h"

namespace brisk {
namespace {

using testing::for_each_isa;

class DecoderGolden : public testing::GoldenTraining {
 public:
  explicit DecoderGolden(const std::string& name) : GoldenTraining(name) {}

  EngineOptions options(DType compute_type, Backend backend) const {
    DecoderConfig model;
    model.vocab_size = integer("vocab_size");
    model.d_model = integer("d_model");
    model.num_layers = integer("num_layers");
    model.num_heads = integer("num_heads");
    model.num_kv_heads = integer("num_kv_heads");
    model.d_ff = integer("d_ff");
    model.max_length = integer("max_length");
    model.norm = text("norm") == "rms" ? NormKind::rms : NormKind::layer;
    model.norm_epsilon = number("norm_epsilon");
    model.feed_forward =
        text("feed_forward") == "swiglu" ? DecoderConfig::FeedForward::swiglu : DecoderConfig::FeedForward::gelu_tanh;
    model.positions =
        text("positions") == "rotary" ? DecoderConfig::Positions::rotary : DecoderConfig::Positions::learned;
    model.rope_theta = number("rope_theta");
    model.bias = integer("bias") == 1;
    model.tie_embeddings = integer("tie_embeddings") == 1;
    return engine_options(model, compute_type, backend);
  }
};

void compare(const DecoderGolden& golden, const EngineOptions& options, double tolerance) {
  golden.compare(options, tolerance,
                 [](const Model& model, Tape& tape) { return testing::as_decoder(model).logits(tape); });
}

class PyTorch : public ::testing::TestWithParam<const char*> {
 protected:
  testing::Threads threads_{1};
};

TEST_P(PyTorch, AgreesInFp32OnEveryInstructionSet) {
  const DecoderGolden golden(GetParam());
  for_each_isa([&](Isa) { compare(golden, golden.options(DType::f32, Backend::cpu), 1e-5); });
}

TEST_P(PyTorch, AgreesInBf16OnEveryInstructionSet) {
  const DecoderGolden golden(GetParam());
  for_each_isa([&](Isa) { compare(golden, golden.options(DType::bf16, Backend::cpu), 2e-2); });
}

TEST_P(PyTorch, AgreesWithTheReferenceBackend) {
  const DecoderGolden golden(GetParam());
  compare(golden, golden.options(DType::f32, Backend::reference), 1e-5);
  compare(golden, golden.options(DType::bf16, Backend::reference), 2e-2);
}

TEST_P(PyTorch, AgreesOnTwoThreads) {
  const testing::Threads two(2);
  const DecoderGolden golden(GetParam());
  compare(golden, golden.options(DType::f32, Backend::cpu), 1e-5);
  compare(golden, golden.options(DType::bf16, Backend::cpu), 2e-2);
}

TEST_P(PyTorch, AgreesOnAGpu) {
  std::string why;
  if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
  const DecoderGolden golden(GetParam());
  for (const DType type : {DType::f32, DType::bf16}) {
    EngineOptions options = golden.options(type, Backend::cuda);
    options.device = &cuda_device();
    compare(golden, options, type == DType::f32 ? 1e-5 : 2e-2);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, PyTorch, ::testing::Values("gpt", "llama"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace brisk
