// The encoder: sizes, and what must not change its loss and gradients.
#include <gtest/gtest.h>

#include "models/model_costs.h"
#include "optim/adamw.h"
#include "support/encoder_job.h"
#include "support/optimizer_step.h"

namespace brisk {
namespace {

using namespace brisk::testing;
using Head = EncoderConfig::Head;

const std::vector<int> kLengths = {9, 1, 24, 3, 13, 2};

EncoderConfig bert_base(Head head) {
  EncoderConfig config;
  config.vocab_size = 30522;
  config.types = 2;
  config.head = head;
  return config;
}

EncoderConfig distilbert_base() {
  EncoderConfig config = bert_base(Head::relu);
  config.num_layers = 6;
  config.types = 0;
  return config;
}

EncoderConfig roberta_base() {
  EncoderConfig config = bert_base(Head::roberta);
  config.vocab_size = 50265;
  config.position_offset = 2;
  config.types = 1;
  return config;
}

int64_t parameters_of(const EncoderConfig& config) {
  ParameterStore store;
  const Encoder encoder(config, store);
  return store.count();
}

TEST(EncoderSize, IsThatOfTransformers) {
  EXPECT_EQ(parameters_of(bert_base(Head::pooler_tanh)), 109'483'778);
  EXPECT_EQ(parameters_of(distilbert_base()), 66'955'010);
  EXPECT_EQ(parameters_of(roberta_base()), 124'647'170);
  EXPECT_EQ(parameters_of(bert_base(Head::mlm)), 109'514'298);
}

// Of texts of this length, one row of each picked.
std::vector<RowMeans> rows_of(double length) { return {{length, length}, {1, 1, true}}; }

TEST(EncoderSize, CostsListEveryParameter) {
  for (const EncoderConfig& config :
       {bert_base(Head::pooler_tanh), distilbert_base(), roberta_base(), bert_base(Head::mlm)}) {
    int64_t listed = 0;
    for (const ComponentCost& cost : model_costs(config, rows_of(512))) listed += cost.parameters;
    EXPECT_EQ(listed, parameters_of(config));
  }
}

double saved(EncoderConfig config) {
  const double with = model_flop_per_token(config, rows_of(512));
  config.prune_last_layer = false;
  return 1 - with / model_flop_per_token(config, rows_of(512));
}

TEST(EncoderSize, FirstRowOnlySavesASeventhOfDistilbert) {
  EXPECT_NEAR(saved(distilbert_base()), 0.14, 0.005);
  EXPECT_NEAR(saved(bert_base(Head::pooler_tanh)), 0.07, 0.005);
}

// 6 a weight of every product and 12 T D of attention in every layer.
TEST(EncoderSize, FlopAreSixAWeightPlusAttention) {
  EncoderConfig config = bert_base(Head::pooler_tanh);
  config.prune_last_layer = false;
  const double weights = 12.0 * 12 * 768 * 768, attention = 12.0 * 12 * 128 * 768;
  const double head = 6.0 * (768 * 768 + 2 * 768) / 128;
  EXPECT_DOUBLE_EQ(model_flop_per_token(config, rows_of(128)), 6 * weights + attention + head);
}

class EncoderTest : public ::testing::TestWithParam<Head> {
 protected:
  EncoderConfig config_ = tiny_encoder(GetParam());
  MicroBatch batch_ = batch_for(config_, kLengths);
  double picked_ = static_cast<double>(batch_.sets[1].rows());
};

void expect_same_gradients(EncoderJob& a, EncoderJob& b, double tolerance) {
  for (const auto& parameter : a.parameters().all()) {
    const Parameter* other = b.parameters().find(parameter->spec.name);
    if (!parameter->spec.trained || !other->spec.trained) continue;
    EXPECT_LE(distance(a.gradient(*parameter), b.gradient(*other)), tolerance) << parameter->spec.name;
  }
}

TEST_P(EncoderTest, EveryParameterHasAGradient) {
  EncoderJob job(config_);
  job.run(batch_);
  for (const auto& parameter : job.parameters().all()) {
    const std::vector<float> gradient = job.gradient(*parameter);
    EXPECT_GT(distance(gradient, std::vector<float>(gradient.size(), 0.0f)), 1e-4) << parameter->spec.name;
  }
}

TEST_P(EncoderTest, LastLayerOfThePickedRowsAloneChangesNothing) {
  EncoderJob picked(config_);
  config_.prune_last_layer = false;
  EncoderJob all(config_);
  const double loss = all.run(batch_);
  EXPECT_NEAR(picked.run(batch_), loss, 1e-6 * loss);
  expect_same_gradients(picked, all, 1e-5);
  EXPECT_LT(picked.arena_bytes(), all.arena_bytes());
  EXPECT_LE(distance(picked.logits(batch_), all.logits(batch_)), 1e-6);
}

TEST_P(EncoderTest, PackedSequencesAreTheSequencesAlone) {
  for (const bool prune_last_layer : {true, false}) {
    config_.prune_last_layer = prune_last_layer;
    EncoderJob packed(config_), separate(config_);
    const double loss = packed.run(batch_, picked_);
    double sum = 0;
    for (size_t s = 0; s < kLengths.size(); ++s) sum += separate.run(cut(batch_, s), picked_, 1, s == 0);
    EXPECT_NEAR(loss, sum, 1e-5 * sum);
    expect_same_gradients(packed, separate, 1e-5);
  }
}

TEST_P(EncoderTest, IsTheSameOnTheReferenceRecomputedAndOnUnreadableMemory) {
  for (const bool prune_last_layer : {true, false}) {
    config_.prune_last_layer = prune_last_layer;
    EncoderJob job(config_), reference(config_, {.backend = Backend::reference}),
        recomputed(config_, {.checkpoint_every = 1}), pairs_recomputed(config_, {.checkpoint_every = 2}),
        guarded(config_, {.checkpoint_every = 1, .device = &guarded_device()});
    const double loss = job.run(batch_);
    EXPECT_NEAR(reference.run(batch_), loss, 1e-5 * loss);
    expect_same_gradients(reference, job, 2e-5);
    for (EncoderJob* other : {&recomputed, &pairs_recomputed, &guarded}) {
      EXPECT_EQ(other->run(batch_), loss);
      EXPECT_EQ(other->gradients(), job.gradients());
    }
  }
}

TEST_P(EncoderTest, IsCloseInBf16) {
  EncoderJob exact(config_), rounded(config_, {.type = DType::bf16});
  const double loss = exact.run(batch_);
  EXPECT_NEAR(rounded.run(batch_), loss, 1e-2 * loss);
  expect_same_gradients(rounded, exact, 4e-2);
  EXPECT_LE(distance(rounded.logits(batch_), exact.logits(batch_)), 2e-2);
}

TEST_P(EncoderTest, FrozenPartsHaveNoGradientAndChangeNoOther) {
  EncoderJob whole(config_);
  const double loss = whole.run(batch_);
  int64_t arena = whole.arena_bytes();
  config_.frozen_embeddings = config_.frozen_dropout = true;
  for (const int64_t layers : {0, 2, 3}) {
    config_.frozen_layers = layers;
    EncoderJob frozen(config_);
    EXPECT_EQ(frozen.run(batch_), loss);
    for (const auto& parameter : frozen.parameters().all()) {
      const std::string& name = parameter->spec.name;
      const bool below = name.starts_with("embedding") || name.starts_with("positions") || name.starts_with("types") ||
                         (name.starts_with("layers.") && name[7] - '0' < layers);
      EXPECT_EQ(parameter->spec.trained, !below) << name;
      EXPECT_EQ(static_cast<bool>(parameter->gradient), !below) << name;
      if (!below) {
        EXPECT_EQ(frozen.gradient(*parameter), whole.gradient(*whole.parameters().find(name))) << name;
      }
    }
    EXPECT_LE(frozen.arena_bytes(), arena) << layers;
    arena = frozen.arena_bytes();
  }
  EXPECT_LT(arena, whole.arena_bytes());
}

TEST_P(EncoderTest, HasAKindOfDropoutForEachPlace) {
  const EncoderConfig plain = without_dropout(config_);
  const double loss = EncoderJob(plain).run(batch_);
  for (double EncoderConfig::*place :
       {&EncoderConfig::dropout, &EncoderConfig::attention_dropout, &EncoderConfig::classifier_dropout}) {
    EncoderConfig config = plain;
    config.*place = 0.4;
    EncoderJob job(config);
    const bool nowhere = place == &EncoderConfig::classifier_dropout && !config.is_classifier();
    if (nowhere) {
      EXPECT_EQ(job.run(batch_), loss);
    } else {
      EXPECT_NE(job.run(batch_), loss);
      EXPECT_NE(job.run(batch_, picked_, 2) / picked_, job.run(batch_));  // another step, other draws
    }
    EXPECT_EQ(job.logits(batch_), EncoderJob(plain).logits(batch_));  // a prediction drops nothing
  }
}

TEST_P(EncoderTest, Learns) {
  EncoderJob job(config_);
  const double first = job.run(batch_);
  AdamW adamw(job.parameters(), {});
  OptimizerStep optimizer_step(job.parameters(), adamw);
  for (int64_t step = 1; step <= 40; ++step) {
    job.run(batch_, picked_, static_cast<uint64_t>(step));
    optimizer_step.run(step, 3e-3);
  }
  EXPECT_LT(job.run(batch_), 0.5 * first);
}

INSTANTIATE_TEST_SUITE_P(Encoder, EncoderTest, ::testing::ValuesIn(kHeads), [](const auto& info) {
  return std::string(std::array{"pooler_tanh", "relu", "roberta", "mlm"}[static_cast<size_t>(info.param)]);
});

TEST(Encoder, WeightsOfRowsScaleTheirLossAndGradient) {
  MicroBatch batch = classify_batch({5, 8, 2});
  EncoderJob weighted(tiny_encoder(Head::relu)), alone(tiny_encoder(Head::relu));
  batch.sets[1].weights = {0, 2, 0};
  const double loss = weighted.run(batch, 2.0);
  EXPECT_NEAR(loss, 2 * alone.run(cut(batch, 1), 1.0), 1e-5 * loss);
  expect_same_gradients(weighted, alone, 1e-5);
}

TEST(Encoder, TokenTypesMatterWhereThereIsATable) {
  for (const Head head : {Head::pooler_tanh, Head::relu}) {
    EncoderJob job(without_dropout(tiny_encoder(head)));
    MicroBatch batch = classify_batch({6, 9});
    const std::vector<float> with = job.logits(batch);
    batch.sets[0].types.clear();
    EXPECT_EQ(job.logits(batch) == with, head == Head::relu);
  }
}

TEST(BatchBuffer, CopiesBothRowSets) {
  MicroBatch batch = masked_batch({5, 1, 9});
  batch.sets[1].weights.assign(batch.sets[1].source.size(), 0.5f);
  BatchBuffer buffer(guarded_device(), {{32, 8, 16}, {16, 8, 16}});
  std::vector<DeviceBatch::Set> sets;
  buffer.load(batch, sets);
  ASSERT_EQ(sets.size(), 2u);
  const auto read = [](const auto* from, size_t count) {
    std::vector<std::remove_cv_t<std::remove_pointer_t<decltype(from)>>> values(count);
    guarded_device().copy_out(values.data(), from, static_cast<int64_t>(4 * count));
    return values;
  };
  EXPECT_EQ(read(sets[0].tokens, 15), batch.sets[0].tokens);
  EXPECT_EQ(read(sets[0].types, 15), batch.sets[0].types);
  EXPECT_EQ(read(sets[0].rows.starts, 4), batch.sets[0].starts);
  const size_t rows = batch.sets[1].source.size();
  EXPECT_EQ(sets[1].rows.rows, static_cast<int64_t>(rows));
  EXPECT_EQ(sets[1].rows.longest, 2);
  EXPECT_EQ(read(sets[1].source, rows), batch.sets[1].source);
  EXPECT_EQ(read(sets[1].targets, rows), batch.sets[1].targets);
  EXPECT_EQ(read(sets[1].weights, rows), batch.sets[1].weights);
  EXPECT_EQ(read(sets[1].rows.position, rows), batch.sets[1].position);
  EXPECT_EQ(read(sets[1].rows.sequence, rows), batch.sets[1].sequence);
  EXPECT_EQ(read(sets[1].rows.starts, 4), batch.sets[1].starts);
}

}  // namespace
}  // namespace brisk
