// brisk against PyTorch: logits, every gradient and ten AdamW steps of both decoder shapes, from the files that
// scripts/make_golden.py writes. fp32 within 1e-5, bf16 within 2e-2 of the exact values, norm-wise per tensor.
#include <gtest/gtest.h>

#include "infer/forward/forward_run.h"
#include "support/golden_file.h"
#include "support/numeric.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using testing::decoder_of;
using testing::distance;
using testing::for_each_isa;
using testing::values_of;

class DecoderGolden : public testing::GoldenFile {
 public:
  explicit DecoderGolden(const std::string& name) : GoldenFile(name) {
    for (size_t step = 0; step < GoldenFile::steps("lengths"); ++step) {
      MicroBatch batch;
      MicroBatch::Set& rows = batch.sets[0];
      rows.tokens = integers("tokens", step);
      rows.targets = integers("targets", step);
      const std::vector<int32_t> lengths = integers("lengths", step);
      for (size_t s = 0; s < lengths.size(); ++s) {
        for (int32_t p = 0; p < lengths[s]; ++p) {
          rows.position.push_back(p);
          rows.sequence.push_back(static_cast<int32_t>(s));
        }
        rows.end_sequence(rows.position.size());
      }
      StepBatch& whole = steps_.emplace_back();
      for (const int32_t target : rows.targets) whole.valid_tokens += target >= 0 ? 1 : 0;
      whole.sequences = std::ssize(lengths);
      whole.micro_batches = {std::move(batch)};
    }
  }

  EngineOptions options(DType compute_type, Backend backend) const {
    EngineOptions options{.model = DecoderConfig()};
    DecoderConfig& model = decoder_of(options);
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
    options.adamw = adamw();
    options.max_grad_norm = number("max_grad_norm");
    options.capacity = {40, 8, model.max_length};
    options.compute_type = compute_type;
    options.backend = backend;
    return options;
  }

  void load_parameters(Engine& engine) const {
    GoldenFile::load_parameters(engine.parameters());
    engine.parameters_changed();
  }

  const std::vector<StepBatch>& steps() const { return steps_; }

 private:
  std::vector<StepBatch> steps_;
};

std::vector<float> logits_of(Engine& engine, const MicroBatch& batch) {
  ForwardRun run(engine.parameters(), {.rows = {engine.options().capacity}, .backend = engine.options().backend},
                 [&](Tape& tape) { return testing::as_decoder(engine.model()).logits(tape); });
  Ledger ledger;
  run.forward(batch, ledger);
  std::vector<float> logits;
  run.read(logits);
  return logits;
}

void compare(const DecoderGolden& golden, const EngineOptions& options, double tolerance) {
  Engine engine(options);
  golden.load_parameters(engine);
  EXPECT_LE(distance(logits_of(engine, golden.steps()[0].micro_batches[0]), golden.numbers("logits")), tolerance)
      << "logits";

  const std::vector<float> losses = golden.numbers("losses"), rates = golden.numbers("rates"),
                           norms = golden.numbers("gradient_norms");
  ASSERT_EQ(losses.size(), 10u);
  Ledger ledger;
  for (size_t i = 0; i < losses.size(); ++i) {
    const StepResult result =
        engine.train_step(golden.steps()[i], static_cast<int64_t>(i) + 1, static_cast<double>(rates[i]), ledger);
    EXPECT_EQ(result.targets, golden.steps()[i].valid_tokens);
    EXPECT_NEAR(result.loss(), losses[i], tolerance * losses[i]) << "loss of step " << i + 1;
    EXPECT_NEAR(result.gradient_norm, norms[i], tolerance * norms[i]) << "gradient norm of step " << i + 1;
    if (i > 0) continue;
    for (const auto& parameter : engine.parameters().all()) {
      EXPECT_LE(distance(values_of(engine.parameters().device(), parameter->gradient),
                         golden.numbers("gradients/" + parameter->spec.name)),
                tolerance)
          << "gradient of " << parameter->spec.name;
    }
  }
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
