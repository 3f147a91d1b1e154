// Training some of the weights: the last layers, or low-rank adapters.
#include "checkpoint/fine_tuned.h"

#include <gtest/gtest.h>

#include "base/files/files.h"
#include "checkpoint/checkpoint.h"
#include "hub/formats/safetensors.h"
#include "support/model_logits.h"
#include "support/numeric.h"
#include "support/sanitized.h"
#include "support/scratch_folder.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using test::ScratchFolder;
using testing::as_decoder;
using testing::both_shapes;
using testing::Curve;
using testing::decoder_of;
using testing::distance;
using testing::expect_same_bits;
using testing::expect_same_curve;
using testing::for_each_isa;
using testing::logits_of;
using testing::packed_steps;
using testing::put_values;
using testing::Shape;
using testing::Threads;
using testing::tiny_corpus;
using testing::tiny_options;
using testing::train_curve;
using testing::train_on;
using testing::values_of;

class FineTuning : public ::testing::TestWithParam<Shape> {
 protected:
  EngineOptions with_adapters() const {
    EngineOptions options = options_;
    decoder_of(options).lora_rank = 3;
    decoder_of(options).lora_scale = 1.5;
    return options;
  }
  EngineOptions with_trained_layers(int64_t layers) const {
    EngineOptions options = options_;
    decoder_of(options).trained_layers = layers;
    return options;
  }
  // Each with AdamW alone and with Muon, which finds hidden matrices in the last layers and none among adapters.
  std::vector<EngineOptions> every_way() const {
    std::vector<EngineOptions> ways = {with_adapters(), with_trained_layers(1), with_adapters(),
                                       with_trained_layers(1)};
    ways[2].muon = ways[3].muon = MuonOptions{.rate_ratio = 2};
    return ways;
  }
  // B is zero at the start, which would hide A's gradient and any mistake in merging.
  static void fill_adapters(Engine& engine) {
    for (const auto& parameter : engine.parameters().all()) {
      if (!parameter->spec.adapter) continue;
      std::vector<float> values = values_of(engine.parameters().device(), parameter->master);
      const uint64_t key = random_key({17, static_cast<uint64_t>(parameter->index)});
      for (size_t i = 0; i < values.size(); ++i) values[i] = 0.2f * static_cast<float>(random_normal(key, i));
      put_values(engine.parameters().device(), parameter->master, values);
    }
    engine.parameters_changed();
  }

  Threads one_{1};
  testing::Corpus corpus_ = tiny_corpus();
  EngineOptions options_ = tiny_options(GetParam().config);
};

INSTANTIATE_TEST_SUITE_P(Decoder, FineTuning, ::testing::ValuesIn(both_shapes()),
                         [](const auto& info) { return info.param.name; });

TEST_P(FineTuning, AdapterGradientsAreTheSlopesOfTheLoss) {
  EngineOptions options = with_adapters();
  decoder_of(options).dropout = 0;
  options.max_grad_norm = 0;
  Engine engine(options);
  engine.initialise(5);
  // At its initial 0.02 the embedding would be lost in what the adapters of the first layer add: too curved for slopes.
  const Parameter* table = engine.parameters().find("embedding.weight");
  std::vector<float> embedding = values_of(cpu_device(), table->master);
  for (float& value : embedding) value *= 50;
  put_values(cpu_device(), table->master, embedding);
  fill_adapters(engine);
  const StepBatch batch = packed_steps(corpus_, 1, 6, 3).front();
  Ledger ledger;
  const auto loss = [&] {
    return engine.train_step(batch, 1, 0, ledger).loss_sum / static_cast<double>(batch.valid_tokens);
  };
  int adapters = 0;
  const size_t entries = testing::kSanitized ? 2 : 4;
  for (const auto& parameter : engine.parameters().all()) {
    if (!parameter->spec.adapter) continue;
    ++adapters;
    const std::vector<float> values = values_of(cpu_device(), parameter->master);
    loss();
    const std::vector<float> gradient = values_of(cpu_device(), parameter->gradient);
    const auto loss_at = [&](size_t entry, float shift) {
      std::vector<float> shifted = values;
      shifted[entry] += shift;
      put_values(cpu_device(), parameter->master, shifted);
      return loss();
    };
    double gap = 0, size = 0;
    for (size_t entry = 1; entry < values.size(); entry += std::max<size_t>(1, values.size() / entries)) {
      const float h = 0.03f;
      const double slope =
          (8 * (loss_at(entry, h) - loss_at(entry, -h)) - (loss_at(entry, 2 * h) - loss_at(entry, -2 * h))) /
          (12.0 * h);
      gap += (slope - gradient[entry]) * (slope - gradient[entry]);
      size += slope * slope;
    }
    put_values(cpu_device(), parameter->master, values);
    EXPECT_LE(std::sqrt(gap), 3e-3 * std::sqrt(size) + 3e-5) << parameter->spec.name;
    EXPECT_GT(size, 0) << parameter->spec.name;
  }
  EXPECT_EQ(adapters, 2 * 4 * 3);
}

TEST_P(FineTuning, WithAdaptersIsTheSameOnTheReferenceAndOnEveryInstructionSet) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 3, 8, 4);
  for (const DType type : {DType::f32, DType::bf16}) {
    EngineOptions options = with_adapters();
    options.compute_type = type;
    options.backend = Backend::reference;
    const Curve reference = train_curve(options, steps);
    options.backend = Backend::cpu;
    for_each_isa(
        [&](Isa) { expect_same_curve(train_curve(options, steps), reference, type == DType::f32 ? 1e-5 : 1e-2); });
  }
}

TEST_P(FineTuning, StartsFromTheModelAsItWas) {
  Engine plain(options_), adapted(with_adapters());
  plain.initialise(5);
  adapted.initialise(5);
  const std::vector<int32_t> tokens = {7, 3, 60, 1, 0, 12, 33};
  EXPECT_EQ(logits_of(as_decoder(adapted.model()), adapted.parameters(), tokens),
            logits_of(as_decoder(plain.model()), plain.parameters(), tokens));
}

TEST_P(FineTuning, FrozenWeightsHaveNoGradientAndDoNotChange) {
  for (const EngineOptions& options : every_way()) {
    Engine engine(options);
    engine.initialise(5);
    std::vector<std::vector<float>> before;
    for (const auto& parameter : engine.parameters().all()) {
      before.push_back(values_of(cpu_device(), parameter->master));
    }
    Curve curve;
    train_on(engine, packed_steps(corpus_, 3, 8, 4), curve);
    for (const auto& parameter : engine.parameters().all()) {
      const std::string& name = parameter->spec.name;
      const bool in_last_layer =
          name.starts_with("layers.2.") || name.starts_with("final_norm") || name == "head.weight";
      const bool trained = decoder_of(options).lora_rank > 0 ? name.find("lora") != std::string::npos : in_last_layer;
      EXPECT_EQ(parameter->spec.trained, trained) << name;
      EXPECT_EQ(static_cast<bool>(parameter->gradient), trained) << name;
      EXPECT_EQ(static_cast<bool>(parameter->first_moment), trained) << name;
      const bool by_muon = options.muon && parameter->spec.hidden;
      EXPECT_EQ(static_cast<bool>(parameter->second_moment), trained && !by_muon) << name;
      EXPECT_FALSE(parameter->spec.adapter && parameter->spec.hidden) << name;
      const std::vector<float> after = values_of(cpu_device(), parameter->master);
      EXPECT_EQ(after != before[static_cast<size_t>(parameter->index)], trained) << name;
    }
  }
}

TEST_P(FineTuning, GradientsOfTheLastLayersAreThoseOfTrainingEverything) {
  Engine whole(options_), part(with_trained_layers(2));
  const StepBatch batch = packed_steps(corpus_, 1, 8, 4).front();
  Ledger ledger;
  for (Engine* engine : {&whole, &part}) {
    engine->initialise(5);
    engine->train_step(batch, 1, 0, ledger);
  }
  int compared = 0;
  for (const auto& parameter : part.parameters().all()) {
    if (!parameter->spec.trained) continue;
    const Parameter* same = whole.parameters().find(parameter->spec.name);
    EXPECT_EQ(values_of(cpu_device(), parameter->gradient), values_of(cpu_device(), same->gradient))
        << parameter->spec.name;
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

TEST_P(FineTuning, TakesLessMemoryThanTrainingEverything) {
  const MemoryPlan whole = plan_memory(options_), part = plan_memory(with_trained_layers(1)),
                   adapted = plan_memory(with_adapters());
  EXPECT_EQ(whole.trained_parameters, whole.parameters);
  EXPECT_EQ(whole.state_bytes, 16 * whole.parameters);
  EXPECT_EQ(part.state_bytes, 4 * part.parameters + 12 * part.trained_parameters);
  EXPECT_LT(part.trained_parameters, whole.parameters / 2);
  EXPECT_LT(adapted.state_bytes, whole.state_bytes / 2);
  // Of three layers two keep nothing for a backward.
  EXPECT_LT(part.activation_bytes, whole.activation_bytes * 6 / 10);
}

TEST_P(FineTuning, IsTheSameRecomputedAndOnMemoryThatIsUnreadableOutsideOps) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 3, 8, 4);
  for (EngineOptions options : every_way()) {
    const Curve kept = train_curve(options, steps);
    options.checkpoint_every = 1;
    expect_same_bits(train_curve(options, steps), kept);
    options.device = &guarded_device();
    expect_same_bits(train_curve(options, steps), kept);
  }
}

TEST_P(FineTuning, ResumesToTheBitFromSmallCheckpoints) {
  const ScratchFolder scratch;
  const std::vector<StepBatch> steps = packed_steps(corpus_, 4, 8, 4);
  for (const EngineOptions& options : every_way()) {
    const std::string run = scratch / ((decoder_of(options).lora_rank > 0 ? "adapters" : "layers") +
                                       std::string(options.muon ? "-muon" : ""));
    make_directories(run);
    const Curve whole = train_curve(options, steps);
    Curve resumed;
    {
      Engine engine(options);
      engine.initialise(options.seed);
      save_frozen(run, engine.parameters());
      train_on(engine, std::span(steps).first(2), resumed);
      CheckpointState state;
      state.step = 2;
      const SaveResult saved = save_checkpoint(run, engine.parameters(), state);
      ASSERT_TRUE(saved.ok()) << saved.problem;
      EXPECT_LT(saved.bytes, 12 * engine.parameters().trained_count() + 20000);
      const SafetensorsFile file(saved.path + "/model.safetensors");
      for (const SafetensorsEntry& entry : file.entries()) {
        EXPECT_TRUE(engine.parameters().find(entry.name)->spec.trained) << entry.name;
      }
    }
    Engine engine(options);
    engine.initialise(99);
    load_checkpoint(*latest_checkpoint(run), engine.parameters());
    load_frozen(run, engine.parameters());
    engine.parameters_changed();
    train_on(engine, std::span(steps).last(2), resumed, 3);
    expect_same_bits(resumed, whole);
  }
}

TEST_P(FineTuning, MergedAdaptersGiveTheSameLogits) {
  const ScratchFolder scratch;
  const EngineOptions options = with_adapters();
  Engine engine(options);
  engine.initialise(5);
  fill_adapters(engine);
  save_frozen(scratch.path(), engine.parameters());
  ASSERT_TRUE(save_checkpoint(scratch.path(), engine.parameters(), {}).ok());

  ParameterStore store;
  const Decoder plain(decoder_of(options_), store);
  store.allocate(guarded_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  load_whole_model(*latest_checkpoint(scratch.path()), store, decoder_of(options).lora_scale);
  const std::vector<int32_t> tokens = {7, 3, 60, 1, 0, 12, 33};
  const std::vector<float> merged = logits_of(plain, store, tokens),
                           adapted = logits_of(as_decoder(engine.model()), engine.parameters(), tokens);
  EXPECT_LE(distance(merged, adapted), 1e-5);

  load_whole_model(*latest_checkpoint(scratch.path()), store, 0);
  EXPECT_GT(distance(logits_of(plain, store, tokens), adapted), 0.1) << "the adapters do nothing";
}

}  // namespace
}  // namespace brisk
