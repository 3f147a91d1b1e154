// brisk against PyTorch and transformers: logits, every gradient and ten AdamW steps of tiny encoder-decoders of every shape,
// from the files that scripts/make_seq2seq_golden.py writes. fp32 within 1e-5, bf16 within 5e-2 of the exact values,
// norm-wise per tensor, and gradients of bf16 within 2e-1: some are of 16 numbers, and T5's scores are not scaled.
#include <gtest/gtest.h>

#include "optim/adamw.h"
#include "support/encoder_decoder_job.h"
#include "support/golden_file.h"
#include "support/numeric.h"
#include "support/optimizer_step.h"

namespace brisk {
namespace {

using namespace brisk::testing;

class EncoderDecoderGoldenFile : public GoldenFile {
 public:
  explicit EncoderDecoderGoldenFile(const std::string& name) : GoldenFile("seq2seq/" + name) {}

  EncoderDecoderConfig config() const {
    using Config = EncoderDecoderConfig;
    Config config;
    config.source_vocab_size = integer("source_vocab_size");
    config.target_vocab_size = integer("target_vocab_size");
    const auto stack = [&](const std::string& prefix, const std::string& layers) {
      Config::Stack sizes;
      sizes.d_model = integer(prefix + "d_model");
      sizes.num_layers = integer(layers);
      sizes.num_heads = integer(prefix + (prefix.empty() ? "num_heads" : "heads"));
      sizes.head_width = integer("head_width") > 0 ? integer("head_width") : sizes.d_model / sizes.num_heads;
      sizes.d_ff = integer(prefix + "d_ff");
      sizes.max_length = integer("max_length");
      sizes.types = integer("types");
      return sizes;
    };
    config.encoder = stack("encoder_", "encoder_layers");
    config.decoder = stack("", "num_layers");
    config.pre_norm = text("norm_position") == "pre";
    config.norm = text("norm") == "rms" ? NormKind::rms : NormKind::layer;
    config.norm_epsilon = number("norm_epsilon");
    config.embedding_norm = flag("embedding_norm");
    const std::string activation = text("activation"), positions = text("positions"), bias = text("head_bias");
    config.feed_forward = activation == "swish"      ? Config::FeedForward::silu
                          : activation == "gelu_erf" ? Config::FeedForward::gelu_erf
                          : activation == "geglu"    ? Config::FeedForward::gated_gelu
                          : activation == "gelu"     ? Config::FeedForward::gelu_tanh
                                                     : Config::FeedForward::relu;
    config.positions = positions == "learned"      ? Config::Positions::learned
                       : positions == "relative"   ? Config::Positions::relative
                       : positions == "sinusoidal" ? Config::Positions::sinusoidal
                                                   : Config::Positions::interleaved_sinusoidal;
    config.position_offset = integer("position_offset");
    config.relative_buckets = integer("relative_buckets");
    config.relative_distance = integer("relative_distance");
    config.scale_embeddings = flag("scale_embeddings");
    config.scale_attention = flag("scale_attention");
    config.scale_head = flag("scale_head");
    config.bias = flag("bias");
    config.share_embeddings = flag("share_embeddings");
    config.tie_head = flag("tie_head");
    config.head_bias = bias == "fixed"     ? Config::HeadBias::fixed
                       : bias == "trained" ? Config::HeadBias::trained
                                           : Config::HeadBias::none;
    config.head_transform = flag("head_transform");
    return without_dropout(config);
  }
  bool flag(const std::string& key) const { return integer(key) != 0; }

  StepBatch step(size_t number) const {
    StepBatch step;
    MicroBatch& batch = step.micro_batches.emplace_back();
    batch.sets.resize(2);
    const auto fill = [&](MicroBatch::Set& set, const std::string& tokens, const std::string& lengths) {
      set.tokens = integers(tokens, number);
      const std::vector<int32_t> counts = integers(lengths, number);
      for (size_t s = 0; s < counts.size(); ++s) {
        for (int32_t p = 0; p < counts[s]; ++p) set.position.push_back(p);
        set.sequence.resize(set.position.size(), static_cast<int32_t>(s));
        set.end_sequence(set.position.size());
      }
    };
    fill(batch.sets[0], "source_tokens", "source_lengths");
    fill(batch.sets[1], "tokens", "lengths");
    batch.sets[1].targets = integers("targets", number);
    step.valid_tokens = batch.sets[1].rows();
    return step;
  }

  void load_parameters(PairsJob& job) const {
    GoldenFile::load_parameters(job.parameters());
    refresh_compute_copies(job.parameters());
  }
};

void compare(const EncoderDecoderGoldenFile& golden, PairsJobOptions options, double tolerance) {
  const double of_gradients = options.type == DType::bf16 ? 2e-1 : tolerance;
  options.label_smoothing = golden.number("label_smoothing");
  options.longest = golden.integer("max_length");
  PairsJob job(golden.config(), options);
  golden.load_parameters(job);
  EXPECT_LE(distance(job.logits(golden.step(0).micro_batches[0]), golden.numbers("logits")), tolerance) << "logits";
  const std::vector<float> losses = golden.numbers("losses"), rates = golden.numbers("rates"),
                           norms = golden.numbers("gradient_norms");
  ASSERT_EQ(losses.size(), 10u);
  AdamW adamw(job.parameters(), golden.adamw());
  OptimizerStep optimizer_step(job.parameters(), adamw, golden.number("max_grad_norm"));
  for (size_t i = 0; i < losses.size(); ++i) {
    const double loss = job.run(golden.step(i));
    const double norm = optimizer_step.run(static_cast<int64_t>(i) + 1, static_cast<double>(rates[i]));
    EXPECT_NEAR(loss, losses[i], tolerance * losses[i]) << "loss of step " << i + 1;
    EXPECT_NEAR(norm, norms[i], of_gradients * norms[i]) << "gradient norm of step " << i + 1;
    for (const auto& parameter : job.parameters().all()) {
      if (i > 0 || !parameter->spec.trained) continue;
      EXPECT_LE(distance(job.gradient(*parameter), golden.numbers("gradients/" + parameter->spec.name)), of_gradients)
          << "gradient of " << parameter->spec.name;
    }
  }
}

class EncoderDecoderGolden : public ::testing::TestWithParam<const char*> {
 protected:
  const EncoderDecoderGoldenFile golden_{GetParam()};
};

TEST_P(EncoderDecoderGolden, HasTheSameLogitsGradientsAndLossesOnTheReference) {
  compare(golden_, {.backend = Backend::reference}, 1e-5);
}

TEST_P(EncoderDecoderGolden, HasTheSameLogitsGradientsAndLossesWithEveryInstructionSet) {
  for_each_isa([&](Isa) { compare(golden_, {}, 1e-5); });
}

TEST_P(EncoderDecoderGolden, HasTheSameLogitsGradientsAndLossesRecomputed) {
  compare(golden_, {.checkpoint_every = 1}, 1e-5);
}

TEST_P(EncoderDecoderGolden, IsCloseInBf16WithEveryInstructionSet) {
  for_each_isa([&](Isa) { compare(golden_, {.type = DType::bf16}, 5e-2); });
}

TEST_P(EncoderDecoderGolden, HasTheSameLogitsGradientsAndLossesOnAGpu) {
  std::string why;
  if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
  compare(golden_, {.backend = Backend::cuda, .device = &cuda_device()}, 1e-5);
  compare(golden_, {.type = DType::bf16, .backend = Backend::cuda, .device = &cuda_device()}, 5e-2);
}

// As transformers prints them, sinusoids and all; a bias that is not trained is a buffer there, and not counted.
TEST_P(EncoderDecoderGolden, HasAsManyParameters) {
  const EncoderDecoderConfig config = golden_.config();
  ParameterStore store;
  const EncoderDecoder model(config, store);
  int64_t uncounted = config.head_bias == EncoderDecoderConfig::HeadBias::fixed ? config.target_vocab_size : 0;
  if (std::string(GetParam()) == "vanilla" || std::string(GetParam()) == "post") {  // PyTorch's have no positions
    uncounted += 2 * config.encoder.max_length * config.encoder.d_model;
  }
  EXPECT_EQ(store.count() - uncounted, golden_.integer("counted"));
}

// The tables that are made here are those in the files, which transformers made.
TEST_P(EncoderDecoderGolden, HasTheSameSinusoids) {
  ParameterStore store;
  const EncoderDecoder model(golden_.config(), store);
  store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  store.initialise(1);
  for (const char* name : {"encoder.positions.weight", "decoder.positions.weight"}) {
    const Parameter* positions = store.find(name);
    if (positions == nullptr || positions->spec.trained) continue;
    EXPECT_LE(distance(values_of(cpu_device(), positions->master), golden_.numbers(std::string("parameters/") + name)),
              1e-7);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, EncoderDecoderGolden,
                         ::testing::Values("vanilla", "post", "marian", "marian_two", "pegasus", "bart", "mbart", "t5",
                                           "t5_gated", "bert2bert"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace brisk
