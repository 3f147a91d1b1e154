// MU: its parameters, what its rows see, and that it trains like any other model: packed, accumulated, recomputed, resumed,
// on one thread or two, in every precision.
#include "models/mu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "infer/answer/generate.h"
#include "infer/forward/forward_run.h"
#include "models/model_costs.h"
#include "support/micro_batches.h"
#include "support/numeric.h"
#include "support/sanitized.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;

MuConfig tiny_mu(bool reference = false) {
  return {.vocab_size = 61, .num_layers = 2, .max_length = 24, .dropout = 0.1, .reference = reference};
}

EngineOptions mu_options(const MuConfig& config) {
  EngineOptions options;
  options.model = config;
  options.capacity = {1024, 128, config.max_length};
  options.seed = 5;
  return options;
}

int64_t parameters_of(const MuConfig& config) {
  ParameterStore store;
  const Mu mu(config, store);
  return store.count();
}

TEST(Mu, HasAsManyParametersAsItWasFirstWrittenWith) {
  const auto of = [](int64_t layers, int64_t length) {
    return MuConfig{.vocab_size = 50000, .num_layers = layers, .max_length = length, .reference = true};
  };
  EXPECT_EQ(parameters_of(of(24, 512)), 26946256);
  EXPECT_EQ(parameters_of(of(24, 256)), 26929872);
  EXPECT_EQ(parameters_of(of(6, 128)), 11574160);
  MuConfig plain = of(6, 128);
  plain.reference = false;
  EXPECT_EQ(parameters_of(plain), 11574160 - 6 * 256) << "without what is never read";
}

TEST(Mu, IsCountedByTheOpsItRecords) {
  const MuConfig config{.vocab_size = 1000, .num_layers = 3, .max_length = 32};
  std::map<std::string, ComponentCost> costs;
  int64_t listed = 0;
  for (const ComponentCost& cost : model_costs(config, std::vector<RowMeans>{{32, 32}})) {
    listed += cost.parameters;
    costs[cost.component] = cost;
  }
  EXPECT_EQ(listed, parameters_of(config));
  const double D = 64, L = 3;
  EXPECT_EQ(costs.at("block attention projections").flop_per_token, 6 * L * 4 * 4 * D);
  EXPECT_EQ(costs.at("cross attention projections").flop_per_token, 6 * L * 4 * D * D);
  EXPECT_EQ(costs.at("attention").flop_per_token, 2 * 6 * L * 32 * D) << "two attentions of the whole width";
  EXPECT_EQ(costs.at("head").flop_per_token, 6 * 1000 * D);
}

TEST(Mu, StartsAsItWasFirstWritten) {
  ParameterStore store;
  const Mu mu({.vocab_size = 3000, .num_layers = 1}, store);
  store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  store.initialise(3);
  const auto numbers = [&](const char* name) { return values_of(cpu_device(), store.find(name)->master); };
  const auto expect_moments = [&](const char* name, double mean, double deviation) {
    double sum = 0, square = 0;
    const std::vector<float> values = numbers(name);
    for (const float value : values) {
      sum += value;
      square += (value - mean) * (value - mean);
    }
    const auto count = static_cast<double>(values.size());
    EXPECT_NEAR(sum / count, mean, 5 * deviation / std::sqrt(count)) << name;
    EXPECT_NEAR(std::sqrt(square / count), deviation, 5 * deviation / std::sqrt(count)) << name;
  };
  const auto xavier = [](double inputs, double outputs) { return std::sqrt(6 / (inputs + outputs)); };
  expect_moments("embedding.weight", 0, 0.02);
  expect_moments("layers.0.affinity.weight", 0, 0.1);
  expect_moments("layers.0.sensitivity.base", 0.5, 0.1);
  expect_moments("layers.0.blocks.qkv.weight", 0, xavier(4, 12) / std::sqrt(3));
  expect_moments("layers.0.cross.qkv.weight", 0, xavier(64, 192) / std::sqrt(3));
  expect_moments("layers.0.up.weight", 0, xavier(64, 256) / std::sqrt(3));
  const std::vector<float> up = numbers("layers.0.up.weight");
  const float largest = *std::max_element(up.begin(), up.end());
  EXPECT_LE(largest, xavier(64, 256));
  EXPECT_GT(largest, 0.99 * xavier(64, 256)) << "uniform: up to its bound";
}

// With enough life in it that a wrong key or position shows in the logits.
class LivelyMu {
 public:
  explicit LivelyMu(const MuConfig& config, DType type = DType::f32) : options_(mu_options(config)) {
    options_.compute_type = type;
    engine_ = std::make_unique<Engine>(options_);
    engine_->initialise(7);
    for (const char* name : {"embedding.weight", "positions.weight"}) {
      const Parameter* parameter = engine_->parameters().find(name);
      std::vector<float> values = values_of(cpu_device(), parameter->master);
      for (float& value : values) value *= 50;
      put_values(cpu_device(), parameter->master, values);
    }
    engine_->parameters_changed();
  }

  const Mu& mu() const { return dynamic_cast<const Mu&>(engine_->model()); }
  const ParameterStore& parameters() const { return engine_->parameters(); }

  std::vector<float> logits(const std::vector<std::vector<TokenId>>& texts) const {
    MicroBatch batch;
    for (const std::vector<TokenId>& text : texts) add_sequence(batch.sets[0], text);
    ForwardRun run(parameters(), {.rows = {options_.capacity}}, [&](Tape& tape) { return mu().logits(tape); });
    Ledger ledger;
    run.forward(batch, ledger);
    std::vector<float> logits;
    run.read(logits);
    return logits;
  }

 private:
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

constexpr size_t kTinyVocabulary = 61;

TEST(Mu, SeesNoLaterTokenButForTheReference) {
  const Threads one(1);
  const std::vector<TokenId> text = {5, 17, 3, 44, 9, 60, 2, 31};
  std::vector<TokenId> other = text;
  other[5] = 21;
  for (const bool reference : {false, true}) {
    const LivelyMu model(tiny_mu(reference));
    const std::vector<float> before = model.logits({text}), after = model.logits({other});
    const auto differ = [&](size_t row) {
      const auto first = static_cast<std::ptrdiff_t>(row * kTinyVocabulary);
      return !std::equal(before.begin() + first, before.begin() + first + kTinyVocabulary, after.begin() + first);
    };
    for (size_t row = 0; row < text.size(); ++row) {
      EXPECT_EQ(differ(row), reference || row >= 5) << "row " << row << (reference ? " of the reference" : "");
    }
  }
}

TEST(Mu, GeneratesWhatItSaysWithoutACache) {
  const Threads one(1);
  const LetterTokenizer tokenizer;
  for (const bool reference : {false, true}) {
    const LivelyMu model(tiny_mu(reference));
    Generator generator(model.mu(), model.parameters(), tokenizer);
    const Generated text = generator.generate("AB", {.max_tokens = 18, .temperature = 0, .stop_at_end = false});
    ASSERT_EQ(text.new_tokens, 18);
    std::vector<TokenId> read = {0};
    read.insert(read.end(), text.ids.begin(), text.ids.begin() + 2);
    for (size_t i = 2; i < text.ids.size(); ++i) {
      const std::vector<float> all = model.logits({read});
      const auto last = all.end() - kTinyVocabulary;
      EXPECT_EQ(text.ids[i], std::max_element(last, all.end()) - last) << "token " << i;
      read.push_back(text.ids[i]);
    }
    // Beyond its length it goes on from the second half of the text.
    const Generated longer = generator.generate("AB", {.max_tokens = 60, .temperature = 0, .stop_at_end = false});
    EXPECT_EQ(longer.new_tokens, 60);
    EXPECT_GT(longer.restarts, 0);
    EXPECT_EQ(longer.prompt_dropped, 0);
  }
}

class MuCurve : public ::testing::TestWithParam<bool> {
 protected:
  Threads threads_{1};
  EngineOptions options_ = mu_options(tiny_mu(GetParam()));
  Corpus corpus_ = tiny_corpus();
};
INSTANTIATE_TEST_SUITE_P(Mu, MuCurve, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "reference" : "causal"; });

TEST_P(MuCurve, Falls) {
  const std::vector<StepBatch> steps(kSanitized ? 12 : 40, packed_steps(corpus_, 1)[0]);
  const Curve curve = train_curve(options_, steps);
  EXPECT_LT(curve.losses.back(), curve.losses.front() - (kSanitized ? 0.2 : 0.8));
}

TEST_P(MuCurve, IsTheSamePackedAndSequenceBySequence) {
  const Curve packed = train_curve(options_, packed_steps(corpus_, 6, 16, 16));
  expect_same_curve(train_curve(options_, packed_steps(corpus_, 6, 16, 1)), packed, 1e-5);
}

TEST_P(MuCurve, IsTheSameAccumulated) {
  const Curve together = train_curve(options_, packed_steps(corpus_, 6, 32, 32));
  expect_same_curve(train_curve(options_, packed_steps(corpus_, 6, 32, 8)), together, 1e-5);
}

TEST_P(MuCurve, IsTheSameToTheBitWhenActivationsAreRecomputed) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 4, 32, 8);
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.compute_type = type;
    options_.checkpoint_every = 0;
    const Curve kept = train_curve(options_, steps);
    for (const int64_t every : {1, 2}) {
      options_.checkpoint_every = every;
      expect_same_bits(train_curve(options_, steps), kept);
    }
  }
}

TEST_P(MuCurve, IsTheSameOnOneThreadAndOnTwo) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 4, 32, 32);
  const Curve one = train_curve(options_, steps);
  const Threads two(2);
  expect_same_curve(train_curve(options_, steps), one, 1e-5);
  expect_same_bits(train_curve(options_, steps), train_curve(options_, steps));
}

TEST_P(MuCurve, IsTheSameResumedAndUninterruptedToTheBit) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 4, 16, 8);
  const Curve whole = train_curve(options_, steps);
  const auto arrays = [](ParameterStore& store) {
    return std::vector<Tensor>{store.flat_master(), store.flat_first_moment(), store.flat_second_moment()};
  };
  Curve resumed;
  std::vector<std::vector<float>> state;
  {
    Engine engine(options_);
    engine.initialise(options_.seed);
    train_on(engine, std::span(steps).first(2), resumed);
    for (const Tensor& array : arrays(engine.parameters())) state.push_back(values_of(cpu_device(), array));
  }
  Engine engine(options_);
  engine.initialise(99);
  for (size_t i = 0; i < state.size(); ++i) put_values(cpu_device(), arrays(engine.parameters())[i], state[i]);
  engine.parameters_changed();
  train_on(engine, std::span(steps).last(2), resumed, 3);
  expect_same_bits(resumed, whole);
}

TEST_P(MuCurve, IsTheSameOnTheReferenceAndOnEveryInstructionSet) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 2, 8, 8);
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.compute_type = type;
    options_.backend = Backend::reference;
    const Curve reference = train_curve(options_, steps);
    options_.backend = Backend::cpu;
    for_each_isa(
        [&](Isa) { expect_same_curve(train_curve(options_, steps), reference, type == DType::f32 ? 1e-5 : 1e-2); });
  }
}

TEST_P(MuCurve, FallsWithMuonToo) {
  options_.muon = MuonOptions{.rate_ratio = 2};
  const std::vector<StepBatch> steps(12, packed_steps(corpus_, 1)[0]);
  const Curve curve = train_curve(options_, steps);
  EXPECT_LT(curve.losses.back(), curve.losses.front() - 0.2);
}

// Memory that cannot be touched outside ops: what trains there needs no change for a GPU.
TEST_P(MuCurve, IsTheSameOnMemoryThatIsUnreadableOutsideOps) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 2, 16, 8);
  const Curve plain = train_curve(options_, steps);
  options_.device = &guarded_device();
  expect_same_bits(train_curve(options_, steps), plain);
}

}  // namespace
}  // namespace brisk
