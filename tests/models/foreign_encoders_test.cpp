// brisk against transformers: the encoders that scripts/make_encoder_folders.py writes give the same logits here.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/files.h"
#include "hub/huggingface/encoder.h"
#include "models/encoder.h"
#include "support/encoder_job.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using Json = nlohmann::ordered_json;
using testing::Threads;
using testing::values_of;

std::string golden_encoder(const std::string& name) { return std::string(BRISK_GOLDEN) + "/encoders/" + name; }

EncoderConfig encoder_config_of(const HuggingFaceEncoderConfig& config) {
  const ModelOptions& model = config.model;
  EncoderConfig encoder;
  encoder.vocab_size = model.vocab_size;
  encoder.d_model = model.d_model;
  encoder.num_layers = model.num_layers;
  encoder.num_heads = model.num_heads;
  encoder.d_ff = model.d_ff;
  encoder.max_length = model.context;
  encoder.position_offset = model.type == "roberta" ? kRobertaPositionOffset : 0;
  encoder.types = model.token_types;
  encoder.norm_epsilon = model.norm_epsilon;
  encoder.feed_forward = model.activation == "gelu_erf" ? EncoderConfig::FeedForward::gelu_erf
                         : model.activation == "gelu"   ? EncoderConfig::FeedForward::gelu_tanh
                                                        : EncoderConfig::FeedForward::relu;
  encoder.head = config.head == HuggingFaceEncoderConfig::Head::masked_words ? EncoderConfig::Head::mlm
                 : model.type == "bert"                                      ? EncoderConfig::Head::pooler_tanh
                 : model.type == "distilbert"                                ? EncoderConfig::Head::relu
                                                                             : EncoderConfig::Head::roberta;
  encoder.num_labels = model.num_labels;
  return encoder;
}

// Of the first row of a classifier, of every row otherwise.
std::vector<float> logits_of(const HuggingFaceEncoder& folder, const Json& golden) {
  ParameterStore store;
  const Encoder encoder(encoder_config_of(folder.config()), store);
  store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  store.initialise(1);
  const EncoderLoading loading = folder.load_into(store);
  EXPECT_TRUE(loading.missing.empty() && loading.replaced.empty());

  MicroBatch batch;
  testing::add_sequence(batch.sets[0], golden.at("tokens").get<std::vector<int32_t>>());
  if (encoder.config().types > 0) batch.sets[0].types = golden.at("types").get<std::vector<int32_t>>();
  const int64_t rows = batch.rows(), picked = encoder.config().is_classifier() ? 1 : rows;
  for (int32_t i = 0; i < picked; ++i) testing::pick(batch, i, 0);
  testing::end_picked(batch);

  ForwardRun run(store, {.rows = {{rows, 1, rows}, {picked, 1, picked}}},
                 [&](Tape& tape) { return encoder.head_logits(tape); });
  Ledger ledger;
  run.forward(batch, ledger);
  std::vector<float> logits;
  run.read(logits);
  return logits;
}

class ForeignEncoder : public ::testing::TestWithParam<std::string> {};

TEST_P(ForeignEncoder, HasTheLogitsOfTransformers) {
  const Threads one(1);
  const Json golden = Json::parse(test::contents_of(golden_encoder(GetParam()) + "/golden.json"));
  const std::vector<float> found = logits_of(HuggingFaceEncoder(golden_encoder(GetParam())), golden);
  size_t i = 0;
  for (const Json& row : golden.at("logits")) {
    for (const Json& expected : row) {
      ASSERT_LT(i, found.size());
      EXPECT_NEAR(found[i++], expected.get<float>(), 1e-4);
    }
  }
  EXPECT_EQ(i, found.size());
}

INSTANTIATE_TEST_SUITE_P(Golden, ForeignEncoder,
                         ::testing::Values("bert", "bert_mlm", "bert_pretraining_bin", "distilbert", "distilbert_mlm",
                                           "roberta", "roberta_mlm"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace brisk
