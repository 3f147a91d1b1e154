// training.padding: rows that are computed, and change nothing. Dropout is on throughout.
#include "data/batch/padding.h"

#include <gtest/gtest.h>

#include "data/batch/loader.h"
#include "support/encoder_job.h"
#include "support/tiny_job.h"
#include "train/engine/engine.h"

namespace brisk {
namespace {

using testing::distance;
using testing::Threads;

struct Measured {
  StepResult result;
  std::vector<float> gradient;
};

Measured measure(const EngineOptions& options, const StepBatch& batch) {
  const Threads one(1);
  Engine engine(options);
  engine.initialise(options.seed);
  Ledger ledger;
  Measured measured{engine.train_step(batch, 1, 0.0, ledger), {}};
  measured.gradient = testing::values_of(engine.parameters().device(), engine.parameters().flat_gradient());
  return measured;
}

int64_t rows_of(const StepBatch& batch) {
  int64_t rows = 0;
  for (const MicroBatch& micro_batch : batch.micro_batches) rows += micro_batch.rows();
  return rows;
}

// The step with rows up to the longest, and up to `length`: the same loss, the same gradient, the same tokens.
void expect_same_step(const EngineOptions& options, const StepBatch& batch, int64_t length) {
  const Measured ragged = measure(options, batch);
  EXPECT_EQ(ragged.result.rows, ragged.result.tokens);
  for (const Padding& padding :
       {Padding{.to = Padding::To::longest}, Padding{.to = Padding::To::lengths, .lengths = {length}}}) {
    StepBatch padded = batch;
    for (MicroBatch& micro_batch : padded.micro_batches) pad(micro_batch, padding);
    ASSERT_GT(rows_of(padded), rows_of(batch));
    const Measured with = measure(options, padded);
    EXPECT_EQ(with.result.tokens, ragged.result.tokens);
    EXPECT_EQ(with.result.rows, rows_of(padded));
    EXPECT_EQ(with.result.targets, ragged.result.targets);
    EXPECT_NEAR(with.result.loss(), ragged.result.loss(), 1e-6 * ragged.result.loss());
    EXPECT_NEAR(with.result.gradient_norm, ragged.result.gradient_norm, 1e-5 * ragged.result.gradient_norm);
    EXPECT_LT(distance(with.gradient, ragged.gradient), 1e-5);
  }
}

class PaddingOfDecoders : public ::testing::TestWithParam<testing::Shape> {};

TEST_P(PaddingOfDecoders, ChangesNoStep) {
  for (StepBatch& step : testing::packed_steps(testing::tiny_corpus(), 2, 24, 8))
    expect_same_step(testing::tiny_options(GetParam().config), step, 24);
}

INSTANTIATE_TEST_SUITE_P(All, PaddingOfDecoders, ::testing::ValuesIn(testing::both_shapes()),
                         [](const auto& info) { return info.param.name; });

// Of a classifier's first rows, or of masked ones.
EngineOptions encoder_options(const EncoderConfig& config) {
  EngineOptions options;
  options.model = config;
  options.layout.others = {{[](const RowCapacity& texts) { return texts; }, /*derived_from=*/0}};
  options.capacity = options.layout.capacity(256, 24);
  options.seed = 5;
  return options;
}

StepBatch encoder_step(EncoderConfig::Head head) {
  StepBatch step;
  for (const std::vector<int>& lengths : {std::vector<int>{5, 1, 9, 16}, {3, 17, 2}}) {
    step.micro_batches.push_back(head == EncoderConfig::Head::mlm ? testing::masked_batch(lengths)
                                                                  : testing::classify_batch(lengths));
    step.sequences += std::ssize(lengths);
    for (const int32_t target : step.micro_batches.back().sets[1].targets) step.valid_tokens += target >= 0;
  }
  return step;
}

class PaddingOfEncoders : public ::testing::TestWithParam<EncoderConfig::Head> {};

TEST_P(PaddingOfEncoders, ChangesNoStep) {
  for (const bool prunes : {true, false}) {
    SCOPED_TRACE(prunes ? "pruned" : "whole");
    EncoderConfig config = testing::tiny_encoder(GetParam());
    config.prune_last_layer = prunes;
    expect_same_step(encoder_options(config), encoder_step(GetParam()), 24);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PaddingOfEncoders, ::testing::ValuesIn(testing::kHeads));

// Attention that saw padding would answer something else: the test above can fail.
TEST(PaddingOfAnEncoder, WouldShowWhereItIsSeen) {
  const EngineOptions options = encoder_options(testing::tiny_encoder(EncoderConfig::Head::pooler_tanh));
  StepBatch batch = encoder_step(EncoderConfig::Head::pooler_tanh);
  const Measured ragged = measure(options, batch);
  for (MicroBatch& micro_batch : batch.micro_batches) {
    pad(micro_batch, {.to = Padding::To::longest});
    micro_batch.sets[0].real_ends.clear();
  }
  EXPECT_GT(distance(measure(options, batch).gradient, ragged.gradient), 1e-2);
}

TEST(PaddingOfARun, IsNoTokenOfAStep) {
  EngineOptions options = testing::tiny_options(testing::gpt_shape());
  options.capacity.rows = 240;
  Engine engine(options);
  engine.initialise(options.seed);
  const LoaderOptions loader_options{.sequences_per_step = 32,
                                     .micro_batch_rows = {240},
                                     .workers = 0,
                                     .padding = {.to = Padding::To::lengths, .lengths = {24}}};
  Loader loader(testing::tiny_corpus().sequences(), loader_options);
  const StepBatch batch = loader.next();
  Ledger ledger;
  const StepResult result = engine.train_step(batch, 1, 1e-3, ledger);
  EXPECT_EQ(result.rows, 32 * 24);
  EXPECT_EQ(result.tokens, batch.valid_tokens);
  EXPECT_EQ(result.targets, batch.valid_tokens);
  EXPECT_LT(result.tokens, result.rows);
}

}  // namespace
}  // namespace brisk
