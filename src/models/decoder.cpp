#include "models/decoder.h"

#include <fmt/format.h>

#include <cmath>

namespace brisk {

namespace {

Activation activation_of(DecoderConfig::FeedForward kind) {
  switch (kind) {
    case DecoderConfig::FeedForward::gelu_tanh: return Activation::gelu_tanh;
    case DecoderConfig::FeedForward::gelu_erf: return Activation::gelu_erf;
    case DecoderConfig::FeedForward::relu: return Activation::relu;
    case DecoderConfig::FeedForward::swiglu: return Activation::silu;
  }
  return Activation::none;
}

}  // namespace

Decoder::Decoder(const DecoderConfig& config, ParameterStore& store) : config_(config) {
  const int64_t D = config.d_model, F = config.d_ff, K = config.head_width();
  const int64_t q_rows = config.num_heads * K, kv_rows = config.num_kv_heads * K;
  // GPT-2's initialisation: 0.02, and the two products that write to the residual stream shrunk by the number of
  // writes.
  const Initial normal{Initial::Kind::normal, 0.02};
  const Initial shrunk{Initial::Kind::normal, 0.02 / std::sqrt(2.0 * static_cast<double>(config.num_layers))};
  const bool gated = config.feed_forward == DecoderConfig::FeedForward::swiglu;

  const auto table = [&](const std::string& name) {
    return store.add({name + ".weight", config.vocab_size, D, true, true, normal, {}});
  };
  const auto weight = [&](const std::string& name, int64_t rows, int64_t cols, Initial initial,
                          std::vector<int64_t> parts = {}) {
    return store.add({name + ".weight", rows, cols, true, true, initial, std::move(parts), true});
  };
  const auto bias = [&](const std::string& name, int64_t cols) -> Parameter* {
    if (!config.bias) return nullptr;
    return store.add({name + ".bias", 1, cols, false, false, {Initial::Kind::zeros}, {}});
  };
  const auto gain = [&](const std::string& name) {
    return store.add({name + ".gain", 1, D, false, false, {Initial::Kind::ones}, {}});
  };
  const auto norm_bias = [&](const std::string& name) -> Parameter* {
    return config.norm == NormKind::layer ? bias(name, D) : nullptr;
  };

  table_ = table("embedding");
  if (config.positions == DecoderConfig::Positions::learned) {
    positions_ = store.add({"positions.weight", config.max_length, D, true, false, normal, {}});
  }
  for (int64_t l = 0; l < config.num_layers; ++l) {
    const std::string prefix = fmt::format("layers.{}.", l);
    Layer layer{};
    layer.attention_norm = gain(prefix + "attention_norm");
    layer.attention_norm_bias = norm_bias(prefix + "attention_norm");
    layer.qkv = weight(prefix + "qkv", q_rows + 2 * kv_rows, D, normal, {q_rows, kv_rows, kv_rows});
    layer.qkv_bias = bias(prefix + "qkv", q_rows + 2 * kv_rows);
    layer.attention_out = weight(prefix + "attention_out", D, q_rows, shrunk);
    layer.attention_out_bias = bias(prefix + "attention_out", D);
    layer.feed_forward_norm = gain(prefix + "feed_forward_norm");
    layer.feed_forward_norm_bias = norm_bias(prefix + "feed_forward_norm");
    layer.up = weight(prefix + "up", gated ? 2 * F : F, D, normal,
                      gated ? std::vector<int64_t>{F, F} : std::vector<int64_t>{});
    layer.up_bias = bias(prefix + "up", gated ? 2 * F : F);
    layer.down = weight(prefix + "down", D, F, shrunk);
    layer.down_bias = bias(prefix + "down", D);
    layers_.push_back(layer);
  }
  final_norm_ = gain("final_norm");
  final_norm_bias_ = norm_bias("final_norm");
  head_ = config.tie_embeddings ? table_ : table("head");
}

Value Decoder::block(Tape& tape, const Layer& layer, Value h) const {
  const int64_t K = config_.head_width();
  const AttentionShape shape{config_.num_heads, config_.num_kv_heads, K, 1.0f / std::sqrt(static_cast<float>(K)), true};

  Value x = norm(tape, h, config_.norm, layer.attention_norm, layer.attention_norm_bias, config_.norm_epsilon);
  Value qkv = linear(tape, x, layer.qkv, {.bias = layer.qkv_bias});
  if (config_.positions == DecoderConfig::Positions::rotary) {
    qkv = rotary(tape, qkv, (config_.num_heads + config_.num_kv_heads) * K, K, config_.rope_theta);
  }
  const Value mixed = self_attention(tape, qkv, shape, config_.dropout);
  h = linear(tape, mixed, layer.attention_out,
             {.bias = layer.attention_out_bias, .dropout = config_.dropout, .residual = h});

  x = norm(tape, h, config_.norm, layer.feed_forward_norm, layer.feed_forward_norm_bias, config_.norm_epsilon);
  const Activation activation = activation_of(config_.feed_forward);
  Value inner;
  if (config_.feed_forward == DecoderConfig::FeedForward::swiglu) {
    inner = gated(tape, linear(tape, x, layer.up, {.bias = layer.up_bias}), activation);
  } else {
    inner = linear(tape, x, layer.up, {.bias = layer.up_bias, .activation = activation});
  }
  return linear(tape, inner, layer.down, {.bias = layer.down_bias, .dropout = config_.dropout, .residual = h});
}

Value Decoder::hidden(Tape& tape) const {
  Value h = embedding(tape, 0, table_, positions_, config_.dropout);
  for (const Layer& layer : layers_) {
    h = block(tape, layer, h);
    tape.end_layer();
  }
  return norm(tape, h, config_.norm, final_norm_, final_norm_bias_, config_.norm_epsilon);
}

LossValues Decoder::loss(Tape& tape, const LossOptions& options) const {
  return linear_cross_entropy(tape, hidden(tape), head_, options);
}

Value Decoder::next_token_logits(Tape& tape) const { return last_row_logits(tape, hidden(tape), head_); }
Value Decoder::logits(Tape& tape) const { return all_logits(tape, hidden(tape), head_); }

std::vector<ComponentCost> decoder_costs(const DecoderConfig& config, double mean_length) {
  const int64_t D = config.d_model, F = config.d_ff, V = config.vocab_size, L = config.num_layers,
                K = config.head_width();
  const int64_t q_rows = config.num_heads * K, kv_rows = config.num_kv_heads * K;
  const bool gated = config.feed_forward == DecoderConfig::FeedForward::swiglu;
  const auto products = [](int64_t weights) { return 6.0 * static_cast<double>(weights); };
  const int64_t bias = config.bias ? 1 : 0;

  std::vector<ComponentCost> costs;
  costs.push_back({"embedding", V * D, 0});
  if (config.positions == DecoderConfig::Positions::learned) costs.push_back({"positions", config.max_length * D, 0});
  const int64_t attention = L * (q_rows + 2 * kv_rows + q_rows) * D;
  costs.push_back({"attention projections", attention + L * bias * (q_rows + 2 * kv_rows + D), products(attention)});
  // Two products of T/2 x K per head forward (causal), four backward.
  costs.push_back({"attention", 0, 6.0 * static_cast<double>(L * q_rows) * mean_length});
  const int64_t inner = gated ? 2 * F : F;
  const int64_t feed_forward = L * (inner + F) * D;
  costs.push_back({"feed-forward", feed_forward + L * bias * (inner + D), products(feed_forward)});
  const int64_t norm_rows = config.norm == NormKind::layer && config.bias ? 2 : 1;
  costs.push_back({"norms", (2 * L + 1) * norm_rows * D, 0});
  costs.push_back(
      {config.tie_embeddings ? "head (the embedding)" : "head", config.tie_embeddings ? 0 : V * D, products(V * D)});
  return costs;
}

double decoder_flop_per_token(const DecoderConfig& config, double length) {
  double sum = 0;
  for (const ComponentCost& cost : decoder_costs(config, length)) sum += cost.flop_per_token;
  return sum;
}

}  // namespace brisk
