// Frozen layers whose outputs were computed beforehand: the losses and gradients of what is above them stay the same.
#include "train/task/frozen_activations.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/model_costs.h"
#include "support/encoder_job.h"
#include "support/framed_tokenizer.h"

namespace brisk {
namespace {

using namespace brisk::testing;
using Head = EncoderConfig::Head;

const std::vector<int> kTextLengths = {9, 1, 24, 3, 13, 2};

EncoderConfig frozen(Head head, int64_t layers) {
  EncoderConfig config = tiny_encoder(head);
  config.frozen_embeddings = true;
  config.frozen_layers = layers;
  return config;
}

EncoderConfig cached(EncoderConfig config) {
  config.cached_layers = config.cacheable_layers();
  return config;
}

// The same batch with what `job` makes of it in place of its first layers.
MicroBatch with_inputs(MicroBatch batch, EncoderJob& job, const EncoderConfig& config) {
  std::vector<std::byte> rows = job.rows_after(batch, config.cached_layers);
  (config.cached_layers == config.num_layers ? batch.sets[1].inputs : batch.sets[0].inputs) = std::move(rows);
  return batch;
}

TEST(FrozenLayers, GiveTheSameLossAndGradientsComputedBeforehand) {
  for (const Head head : kHeads) {
    for (const int64_t layers : {1, 2, 3}) {
      for (const bool prune_last_layer : {true, false}) {
        SCOPED_TRACE(
            fmt::format("head {}, {} layers, last layer pruned {}", static_cast<int>(head), layers, prune_last_layer));
        EncoderConfig config = frozen(head, layers);  // with dropout above them
        config.prune_last_layer = prune_last_layer;
        EncoderJob whole(config), short_cut(cached(config));
        const MicroBatch batch = batch_for(config, kTextLengths);
        const MicroBatch ahead = with_inputs(batch, whole, cached(config));
        for (const uint64_t step : {1u, 2u}) {
          const double loss = whole.run(batch, 7, step), again = short_cut.run(ahead, 7, step);
          EXPECT_NEAR(again, loss, 1e-5 * std::abs(loss)) << step;
          EXPECT_LT(distance(short_cut.gradients(), whole.gradients()), 1e-6) << step;
        }
      }
    }
  }
}

TEST(FrozenLayers, GiveTheSameInBf16) {
  const EncoderConfig config = frozen(Head::pooler_tanh, 2);
  EncoderJob whole(config, {.type = DType::bf16}), short_cut(cached(config), {.type = DType::bf16});
  const MicroBatch batch = batch_for(config, kTextLengths);
  const MicroBatch ahead = with_inputs(batch, whole, cached(config));
  EXPECT_EQ(std::ssize(ahead.sets[0].inputs), 2 * 32 * batch.rows());
  const double loss = whole.run(batch);
  EXPECT_NEAR(short_cut.run(ahead), loss, 1e-5 * std::abs(loss));
  EXPECT_LT(distance(short_cut.gradients(), whole.gradients()), 1e-6);
}

TEST(FrozenLayers, AreWhatTheCachedRowsSay) {
  const EncoderConfig config = cached(frozen(Head::pooler_tanh, 2));
  EncoderJob whole(frozen(Head::pooler_tanh, 2)), short_cut(config);
  const MicroBatch batch = batch_for(config, kTextLengths);
  MicroBatch ahead = with_inputs(batch, whole, config);
  const double loss = short_cut.run(ahead);
  std::swap_ranges(ahead.sets[0].inputs.begin(), ahead.sets[0].inputs.begin() + 128,
                   ahead.sets[0].inputs.begin() + 9 * 128);
  EXPECT_GT(std::abs(short_cut.run(ahead) - loss), 1e-3 * loss);
}

TEST(FrozenLayers, CountNoWorkThatIsNotDone) {
  const std::vector<RowMeans> rows = {{10, 10}, {1, 1, true}};
  const auto flop = [&](const EncoderConfig& config) { return model_flop_per_token(config, rows); };
  const EncoderConfig all = frozen(Head::pooler_tanh, 3);
  EXPECT_LT(flop(cached(frozen(Head::pooler_tanh, 2))), flop(frozen(Head::pooler_tanh, 2)));
  double head = 0;
  for (const ComponentCost& cost : model_costs(all, rows)) {
    if (cost.component == "head") head = cost.flop_per_token;
  }
  EXPECT_EQ(flop(cached(all)), head);
}

TEST(FrozenLayers, DropNothingUnlessToldTo) {
  EncoderConfig config = frozen(Head::pooler_tanh, 3);
  config.classifier_dropout = 0;  // so that nothing else is drawn
  const MicroBatch batch = batch_for(config, kTextLengths);
  EncoderJob same(config);
  EXPECT_EQ(same.run(batch, 1, 1), same.run(batch, 1, 2));
  config.frozen_dropout = true;
  EncoderJob drawn(config);
  EXPECT_NE(drawn.run(batch, 1, 1), drawn.run(batch, 1, 2));
}

TEST(FrozenLayers, AreCachedAsFarAsTheyAreTheSameInEveryEpoch) {
  EXPECT_EQ(frozen(Head::pooler_tanh, 2).cacheable_layers(), 2);
  EXPECT_EQ(frozen(Head::pooler_tanh, 3).cacheable_layers(), 3);
  EXPECT_EQ(frozen(Head::roberta, 3).cacheable_layers(), 2);  // its head drops what the last layer writes
  EXPECT_EQ(frozen(Head::pooler_tanh, 0).cacheable_layers(), 0);
  EXPECT_EQ(tiny_encoder(Head::pooler_tanh).cacheable_layers(), 0);
  EncoderConfig drops = frozen(Head::pooler_tanh, 2);
  drops.frozen_dropout = true;
  EXPECT_EQ(drops.cacheable_layers(), 0);
  EXPECT_EQ(without_dropout(drops).cacheable_layers(), 2);
}

// The file of what the layers make of a table, for weights drawn from `seed`.
class FrozenRowsFile : public ::testing::Test {
 protected:
  FrozenRowsFile() {
    TableOptions options;
    options.paths = {folder_.write("a.csv", "text,label\nabc,pos\nd,neg\nefgh,pos\n")};
    const auto data = open_examples(InputTable(options), tokenizer_, folder_ / "cache");
    examples_ = ExampleSet(data, tokenizer_, training_labels(*data));
  }
  std::shared_ptr<const ExampleActivations> rows(uint64_t seed, int64_t layers = 2, DType type = DType::f32,
                                                 int64_t max_length = 24, float last_layer = 0) {
    EncoderConfig config = frozen(Head::pooler_tanh, layers);
    config.vocab_size = 260;
    const FrozenLayers made(config, layers, type, [&](ParameterStore& store) {
      store.initialise(seed);
      std::vector<float> bias = values_of(store.device(), store.find("layers.2.up.bias")->master);
      bias[0] = last_layer;
      put_values(store.device(), store.find("layers.2.up.bias")->master, bias);
    });
    return made.rows_of(examples_, max_length);
  }

  Threads one_{1};
  ScratchFolder folder_;
  FramedTokenizer tokenizer_;
  ExampleSet examples_;
};

TEST_F(FrozenRowsFile, HasARowForEachTokenOrOneForEachTextWhereAllLayersAreFrozen) {
  const auto each = rows(1), one = rows(1, 3);
  for (const int64_t example : {0, 1, 2}) {
    EXPECT_EQ(std::ssize(each->of(example)), examples_.length(example, 24) * 32 * 4);
    EXPECT_EQ(std::ssize(one->of(example)), 32 * 4);
  }
  EXPECT_EQ(std::ssize(rows(1, 2, DType::bf16)->of(0)), 5 * 32 * 2);
}

TEST_F(FrozenRowsFile, IsFoundAgainForTheSameLayersAndNoOthers) {
  const auto first = rows(1);
  EXPECT_FALSE(first->reused());
  EXPECT_TRUE(rows(1)->reused());
  EXPECT_TRUE(rows(1, 2, DType::f32, 24, 0.5f)->reused());  // a layer above them
  EXPECT_FALSE(rows(1, 3)->reused());
  EXPECT_FALSE(rows(1, 3, DType::f32, 24, 0.5f)->reused());
  EXPECT_FALSE(rows(2)->reused());
  EXPECT_FALSE(rows(1, 1)->reused());
  EXPECT_FALSE(rows(1, 2, DType::bf16)->reused());
  EXPECT_FALSE(rows(1, 2, DType::f32, 4)->reused());
}

}  // namespace
}  // namespace brisk
