#include "models/model_costs.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "models/decoder.h"
#include "models/encoder.h"

namespace brisk {
namespace {

const std::vector<RowMeans> kTexts = {{.rows = 100, .attended = 120}};

DecoderConfig gpt2() {
  DecoderConfig config;
  config.vocab_size = 50257;
  config.d_model = 768;
  config.num_layers = 12;
  config.num_heads = config.num_kv_heads = 12;
  config.d_ff = 3072;
  config.max_length = 1024;
  return config;
}

std::map<std::string, ComponentCost> costs_of(const ModelConfig& config, const std::vector<RowMeans>& sets = kTexts) {
  std::map<std::string, ComponentCost> costs;
  for (const ComponentCost& cost : model_costs(config, sets)) costs[cost.component] = cost;
  return costs;
}

TEST(ModelCosts, AreSixAWeightOfProductsAndAttentionOverACausalHalf) {
  const double D = 768, V = 50257, L = 12;
  auto costs = costs_of(gpt2());
  EXPECT_EQ(costs.at("embedding").parameters, 50257 * 768);
  EXPECT_EQ(costs.at("embedding").flop_per_token, 0);
  EXPECT_EQ(costs.at("positions").parameters, 1024 * 768);
  EXPECT_EQ(costs.at("attention projections").flop_per_token, 6 * L * 4 * D * D);
  EXPECT_EQ(costs.at("attention projections").parameters, 12 * (4 * 768 * 768 + 4 * 768));
  EXPECT_EQ(costs.at("attention").flop_per_token, 6 * L * 120 * D);
  EXPECT_EQ(costs.at("feed-forward").flop_per_token, 6 * L * 8 * D * D);
  EXPECT_EQ(costs.at("norms").parameters, 25 * 2 * 768);
  EXPECT_EQ(costs.at("head (the embedding)").flop_per_token, 6 * V * D);
  EXPECT_EQ(costs.at("head (the embedding)").parameters, 0);
  EXPECT_EQ(costs.size(), 7u);
}

TEST(ModelCosts, OfGroupedHeadsAndGatedUnits) {
  DecoderConfig config = gpt2();
  config.num_kv_heads = 4;
  config.feed_forward = DecoderConfig::FeedForward::swiglu;
  config.positions = DecoderConfig::Positions::rotary;
  config.bias = config.tie_embeddings = false;
  const double D = 768, F = 3072, L = 12;
  auto costs = costs_of(config);
  EXPECT_EQ(costs.at("attention projections").flop_per_token, 6 * L * (2 + 2.0 / 3) * D * D);
  EXPECT_EQ(costs.at("attention").flop_per_token, 6 * L * 120 * D);
  EXPECT_EQ(costs.at("feed-forward").flop_per_token, 6 * L * 3 * D * F);
  EXPECT_EQ(costs.at("head").parameters, 50257 * 768);
  EXPECT_FALSE(costs.contains("positions"));
}

// Frozen layers compute forward alone. The lowest trained product would need the gradient of what goes into it only if
// something below were trained: here its norm is.
TEST(ModelCosts, OfFrozenLayersAreThoseOfForward) {
  DecoderConfig config = gpt2();
  config.trained_layers = 2;
  const double D = 768, V = 50257;
  auto costs = costs_of(config);
  EXPECT_EQ(costs.at("attention projections").flop_per_token, (10 * 2 + 2 * 6) * 4 * D * D);
  EXPECT_EQ(costs.at("attention").flop_per_token, (10 * 2 + 2 * 6) * 120 * D);
  EXPECT_EQ(costs.at("head (the embedding)").flop_per_token, 4 * V * D);  // a gradient passes through it
}

TEST(ModelCosts, OfAdaptersLeaveOutTheGradientsThatNobodyReads) {
  DecoderConfig config = gpt2();
  config.lora_rank = 4;
  const double D = 768, L = 12;
  auto costs = costs_of(config);
  // 2 forward and 2 for the gradient of the input, which the first layer's queries, keys and values do not need.
  EXPECT_EQ(costs.at("attention projections").flop_per_token, 4 * L * 4 * D * D - 2 * 3 * D * D);
  EXPECT_EQ(costs.at("feed-forward").flop_per_token, 4 * L * 8 * D * D);
  const int64_t adapters = costs.at("adapters").parameters;
  EXPECT_EQ(adapters, 12 * 4 * ((3 + 1) + (1 + 1) + (4 + 1) + (1 + 4)) * 768);
  EXPECT_EQ(costs.at("adapters").flop_per_token, 6.0 * static_cast<double>(adapters) - 2 * 4 * D);
}

TEST(ModelCosts, CountRowsOfEachSet) {
  EncoderConfig config;
  config.vocab_size = 1000;
  config.d_model = 64;
  config.d_ff = 256;
  config.num_layers = 3;
  config.num_heads = 4;
  config.head = EncoderConfig::Head::mlm;
  config.prune_last_layer = false;
  const double D = 64, V = 1000;
  const std::vector<RowMeans> sets = {{.rows = 100, .attended = 120}, {.rows = 15, .attended = 15, .derived = true}};
  auto costs = costs_of(config, sets);
  EXPECT_DOUBLE_EQ(costs.at("attention").flop_per_token, 3 * 12 * 120 * D);
  EXPECT_DOUBLE_EQ(costs.at("head (with the embedding)").flop_per_token, 0.15 * 6 * (D * D + V * D));
}

}  // namespace
}  // namespace brisk
