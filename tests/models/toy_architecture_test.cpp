// An architecture in one file: the network, its configuration, and its entry of the table of architectures. It trains
// through the engine and generates without anything else in brisk knowing it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "infer/architecture/architecture.h"
#include "infer/generate.h"
#include "models/model_costs.h"
#include "support/scratch_folder.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;

// A looped transformer: one block, run several times over its own output.
struct LoopedConfig {
  int64_t vocab_size = 0;   // V
  int64_t d_model = 32;     // D
  int64_t num_heads = 2;    // H
  int64_t loops = 3;        // how often the block runs
  int64_t max_length = 24;  // T

  std::unique_ptr<Model> make(ParameterStore& store) const;
  ModelWidths widths() const { return {d_model, d_model}; }
  uint64_t fingerprint() const { return fingerprint_of("looped", vocab_size, d_model, num_heads, loops, max_length); }
};

class LoopedModel final : public CausalModel {
 public:
  LoopedModel(const LoopedConfig& config, ParameterStore& store) : config_(config) {
    const int64_t D = config.d_model;
    const Initial normal{Initial::Kind::normal, 0.05};
    const auto matrix = [&](const char* name, int64_t rows, int64_t cols, std::vector<int64_t> parts = {}) {
      return store.add({.name = name,
                        .rows = rows,
                        .cols = cols,
                        .decays = true,
                        .multiplies = true,
                        .initial = normal,
                        .parts = std::move(parts),
                        .hidden = true});
    };
    const auto gain = [&](const char* name) {
      return store.add({.name = name, .cols = D, .initial = {Initial::Kind::ones}});
    };
    table_ = store.add({.name = "embedding.weight",
                        .rows = config.vocab_size,
                        .cols = D,
                        .decays = true,
                        .multiplies = true,
                        .initial = normal});
    norm_ = gain("block.norm.gain");
    qkv_ = matrix("block.qkv.weight", 3 * D, D, {D, D, D});
    out_ = matrix("block.out.weight", D, D);
    up_ = matrix("block.up.weight", 2 * D, D, {D, D});
    down_ = matrix("block.down.weight", D, D);
    final_norm_ = gain("final_norm.gain");
  }

  LossValues loss(Tape& tape, const LossOptions& options) const override {
    return linear_cross_entropy(tape, hidden(tape), table_, options);
  }
  Value next_token_logits(Tape& tape) const override { return last_row_logits(tape, hidden(tape), table_); }
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t max_length() const override { return config_.max_length; }
  CacheShape cache_shape() const override { return {config_.loops, config_.d_model}; }  // each pass has its own keys

 private:
  Value hidden(Tape& tape) const {
    const int64_t D = config_.d_model, K = D / config_.num_heads;
    const AttentionShape shape{config_.num_heads, config_.num_heads, K, 1.0f / std::sqrt(static_cast<float>(K)), true};
    Value h = embedding(tape, 0, table_);
    for (int64_t loop = 0; loop < config_.loops; ++loop) {
      Value x = norm(tape, h, NormKind::rms, norm_, nullptr, 1e-5);
      x = rotary(tape, linear(tape, x, qkv_), 2 * D, K, 10000);
      h = linear(tape, self_attention(tape, x, shape, 0), out_, {.residual = h});
      x = norm(tape, h, NormKind::rms, norm_, nullptr, 1e-5);
      h = linear(tape, gated(tape, linear(tape, x, up_), Activation::silu), down_, {.residual = h});
      tape.end_layer();
    }
    return norm(tape, h, NormKind::rms, final_norm_, nullptr, 1e-5);
  }

  LoopedConfig config_;
  Parameter *table_, *norm_, *qkv_, *out_, *up_, *down_, *final_norm_;
};

std::unique_ptr<Model> LoopedConfig::make(ParameterStore& store) const {
  return std::make_unique<LoopedModel>(*this, store);
}

class LoopedArchitecture final : public Architecture {
 public:
  std::vector<std::string> types() const override { return {"looped"}; }
  std::vector<std::string> tasks() const override { return {"language_model"}; }
  ModelConfig training_config(const Job& job) const override {
    return LoopedConfig{.vocab_size = job.model.vocab_size,
                        .d_model = job.model.d_model,
                        .num_heads = job.model.num_heads,
                        .loops = job.model.num_layers,
                        .max_length = job.model.context};
  }
  ModelConfig inference_config(const Job& job, const std::function<bool(std::string_view)>&) const override {
    return training_config(job);
  }
  std::string describe(const Job& job) const override { return fmt::format("{} loops", job.model.num_layers); }
};

Job looped_job() {
  Job job;
  job.model.type = "looped";
  job.model.vocab_size = 61;
  job.model.d_model = 32;
  job.model.num_heads = 2;
  job.model.num_layers = 3;
  job.model.context = 24;
  return job;
}

EngineOptions looped_options() {
  EngineOptions options;
  options.model = LoopedArchitecture().training_config(looped_job());
  options.capacity = {1024, 128, 24};
  options.muon = MuonOptions{};
  return options;
}

TEST(AToyArchitecture, LearnsThroughTheEngineAndGenerates) {
  const Threads one(1);
  Engine engine(looped_options());
  engine.initialise(3);
  const Corpus corpus = tiny_corpus();
  const std::vector<StepBatch> steps = packed_steps(corpus, 4);
  Curve curve;
  for (int64_t epoch = 0; epoch < 6; ++epoch) train_on(engine, steps, curve, 1 + 4 * epoch, 1e-2);
  EXPECT_LT(curve.losses.back(), 0.75 * curve.losses.front());

  const CausalModel* model = engine.model().causal();
  ASSERT_NE(model, nullptr);
  const LetterTokenizer tokenizer;
  Generator generator(*model, engine.parameters(), tokenizer);
  const Generated text = generator.generate("AB", {.max_tokens = 40, .temperature = 0, .stop_at_end = false});
  EXPECT_EQ(text.new_tokens, 40);  // beyond its length: the cache goes on from the second half
}

TEST(AToyArchitecture, LearnsTheSameWithCheckpointingAndInSmallerMicroBatches) {
  const Threads one(1);
  const Corpus corpus = tiny_corpus();
  const Curve whole = train_curve(looped_options(), packed_steps(corpus, 4));
  EngineOptions options = looped_options();
  options.checkpoint_every = 2;
  expect_same_curve(train_curve(options, packed_steps(corpus, 4, 32, 8)), whole, 1e-4);
}

TEST(AToyArchitecture, IsCountedByTheOpsItRecords) {
  ParameterStore store;
  const ModelConfig config = LoopedArchitecture().training_config(looped_job());
  const auto model = make_model(config, store);
  std::map<std::string, ComponentCost> costs;
  int64_t listed = 0;
  for (const ComponentCost& cost : model_costs(config, std::vector<RowMeans>{{24, 24}})) {
    listed += cost.parameters;
    costs[cost.component] = cost;
  }
  EXPECT_EQ(listed, store.count());
  const double D = 32, V = 61, loops = 3;
  EXPECT_EQ(costs.at("block.qkv").flop_per_token, loops * 6 * 3 * D * D);
  EXPECT_EQ(costs.at("attention").flop_per_token, loops * 6 * 24 * D);
  EXPECT_EQ(costs.at("head (the embedding)").flop_per_token, 6 * V * D);
}

TEST(AToyArchitecture, SaysWhereItCannotBeExported) {
  EXPECT_TRUE(test::has(test::message_of<UserError>([] { LoopedArchitecture().check_huggingface(looped_job().model); }),
                        "looped"));
}

}  // namespace
}  // namespace brisk
